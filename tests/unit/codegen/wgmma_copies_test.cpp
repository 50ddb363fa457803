// Copies of pixels as they lie in x (Pixels::converted): every pixel that is read of a copy was copied, and copies lie
// where nothing else does. Those that are boxes have wgmma_boxes_test.cpp. Restates Part and convert_run() of
// templates/wgmma/copy_windows.cu.in and convert_*.cu.in.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

#include "codegen/arithmetic.h"
#include "codegen/source.h"
#include "codegen/wgmma/memory.h"
#include "unit/codegen/wgmma_candidates.h"

namespace jitconv::codegen {
namespace {

using test::WgmmaCandidate;

constexpr std::int64_t kCopyUnit = 16;  // bytes: of addresses and lengths

/// What is copied of each channel's plane for a run and a filter row.
struct Part {
  std::int64_t first, end;
};

Part part_of(const WgmmaCandidate& one, std::int64_t run_first, std::int64_t r) {
  const Problem& problem = one.problem;
  const WgmmaGeometry g = one.geometry();
  const std::int64_t q = problem.columns.output, pitch = g.pitch(), width = problem.columns.input;
  const std::int64_t plane = problem.rows.input * width, vector = kCopyUnit / element_bytes(problem.input.type);
  const auto within_row = [width](std::int64_t column) { return std::clamp<std::int64_t>(column, 0, width); };
  const std::int64_t row = run_first / q, column = run_first % q, last = column + g.run_pixels() - 1;
  const auto row_of_x = [&](std::int64_t p) {
    return p * problem.rows.stride - problem.rows.pad + r * problem.rows.dilation;
  };
  const std::int64_t begin = row_of_x(row) * width + within_row(column * problem.columns.stride - problem.columns.pad);
  const std::int64_t end = row_of_x(row + last / pitch) * width +
                           within_row(last % pitch * problem.columns.stride - problem.columns.pad + g.phases());
  const std::int64_t first = begin < 0 ? 0 : begin / vector * vector;
  return {first, std::max(first, end < plane ? ceil_div(end, vector) * vector : plane)};
}

/// Whether each pixel of the run that lies in x is part of what is copied.
bool holds_all_pixels(const WgmmaCandidate& one, std::int64_t run_first, std::int64_t r, const Part& part) {
  const Problem& problem = one.problem;
  const WgmmaGeometry g = one.geometry();
  const std::int64_t q = problem.columns.output, pitch = g.pitch(), column_first = run_first % q;
  for (int phase = 0; phase < g.phases(); ++phase) {
    for (std::int64_t pixel = 0; pixel < g.run_pixels(); ++pixel) {
      const std::int64_t row = run_first / q + (column_first + pixel) / pitch, column = (column_first + pixel) % pitch;
      const std::int64_t h = row * problem.rows.stride - problem.rows.pad + r * problem.rows.dilation;
      const std::int64_t w = column * problem.columns.stride - problem.columns.pad + phase;
      if (h < 0 || h >= problem.rows.input || w < 0 || w >= problem.columns.input) continue;
      const std::int64_t place = h * problem.columns.input + w;
      if (place < part.first || place >= part.end) return false;
    }
  }
  return true;
}

std::vector<WgmmaCandidate> candidates_with_copies() {
  std::vector<WgmmaCandidate> some;
  for (WgmmaCandidate& one : test::some_wgmma_candidates())
    if (one.tiling.converts_pixels()) some.push_back(std::move(one));
  return some;
}

RC_GTEST_PROP(WgmmaCopiesProperty, HoldEveryPixelOfAWindow, ()) {
  for (const WgmmaCandidate& one : candidates_with_copies()) {
    const WgmmaTiling& t = one.tiling;
    const Problem& problem = one.problem;
    const WgmmaGeometry g = one.geometry();
    if (t.tile.images > 0 || g.pixels().copies_boxes()) continue;
    const std::int64_t vector = kCopyUnit / element_bytes(problem.input.type);
    const std::int64_t runs = g.tiles_of_plane() * t.runs(), stride = std::max<std::int64_t>(1, runs / 50);
    for (std::int64_t run = 0; run < runs; run += stride) {
      for (std::int64_t r = 0; r < problem.rows.taps; r += t.pipeline.filter_rows) {
        const Part part = part_of(one, run * t.tile.window, r);
        RC_ASSERT(part.end - part.first <= g.pixels().raw_pitch());
        RC_ASSERT(part.first % vector == 0 && (part.end - part.first) % vector == 0);
        // Nothing is copied where a run lies below x.
        RC_ASSERT(part.end <= problem.rows.input * problem.columns.input || part.end == part.first);
        RC_ASSERT(holds_all_pixels(one, run * t.tile.window, r, part));
      }
    }
  }
}

// What nobody rounds the instruction cuts off, which no bound of an error shows.
RC_GTEST_PROP(WgmmaCopiesProperty, AreRoundedOnTheWayOrWhenTheyAreConverted, ()) {
  for (const WgmmaCandidate& one : candidates_with_copies()) {
    if (one.geometry().loads_pairs()) continue;
    const std::string text = test::convolution_text(one).text;
    const bool converts = text.find("operand = operand_row(channel);") != std::string::npos;
    RC_ASSERT(converts != one.geometry().pixels().copies_boxes());
    RC_ASSERT(converts != (text.find("__float_as_uint(channel[0])") != std::string::npos));
  }
}

RC_GTEST_PROP(WgmmaCopiesProperty, OfImagesAreWholeVectors, ()) {
  for (const WgmmaCandidate& one : candidates_with_copies()) {
    const WgmmaTiling& t = one.tiling;
    const Problem& problem = one.problem;
    const WgmmaGeometry g = one.geometry();
    if (t.tile.images == 0) continue;
    const std::int64_t plane = problem.rows.input * problem.columns.input * element_bytes(problem.input.type);
    RC_ASSERT(g.pixels().raw_pitch() * element_bytes(problem.input.type) == plane);
    // A chunk's channels, the last chunk's, and where chunks, groups and images start.
    RC_ASSERT(g.chunk_channels() * plane % kCopyUnit == 0);
    RC_ASSERT(problem.c % g.chunk_channels() * plane % kCopyUnit == 0);
    RC_ASSERT(problem.c * plane % kCopyUnit == 0);
    RC_ASSERT(g.pixels().raw_run_elements() == t.tile.images * g.chunk_channels() * g.pixels().raw_pitch());
  }
}

RC_GTEST_PROP(WgmmaCopiesProperty, LieBetweenWeightsAndStaging, ()) {
  for (const WgmmaCandidate& one : candidates_with_copies()) {
    const WgmmaTiling& t = one.tiling;
    const Problem& problem = one.problem;
    const WgmmaGeometry g = one.geometry();
    const WgmmaMemory memory(g);
    constexpr int kWarps = 4;
    RC_ASSERT(problem.input.layout() == Layout::nchw && t.producer.team_warps == 1);
    RC_ASSERT(t.pipeline.stages >= kWarps);  // a warp's next stage is never the one it fills
    RC_ASSERT(g.pixels().raw_bytes() % kCopyUnit == 0 && memory.raw_first_byte() % kCopyUnit == 0);
    RC_ASSERT(g.pixels().raw_bytes() >= t.runs() * g.pixels().raw_run_elements() * element_bytes(problem.input.type));
    RC_ASSERT(memory.raw_first_byte() >= memory.weights_first_byte() + g.kept_weight_bytes());
    RC_ASSERT(memory.staging_first_byte() >=
              memory.raw_first_byte() + kWarps * t.producer.copies_ahead * g.pixels().raw_bytes());
    const int barriers = 2 * t.pipeline.stages + kWarps * t.producer.copies_ahead + (t.keeps_weights() ? 1 : 0);
    RC_ASSERT(memory.shared_bytes() >= memory.barriers_first_byte() + 8 * barriers);
  }
}

// Words of two 16-bit pixels have a text of their own.
TEST(WgmmaCopies, BecomeOperandRowsOfEveryType) {
  for (const char* type : {"f32", "f16", "bf16"}) {
    std::size_t pairs = 0, pixels = 0;
    for (const char* shape : {"input=2,24,16,34 weight=40,24,3,3", "input=2,24,16,34 weight=40,24,3,2"}) {
      for (const WgmmaCandidate& one :
           test::wgmma_candidates(parse_spec(std::string(shape) + " math=tf32 dtype=" + type))) {
        if (!one.tiling.converts_pixels() || one.tiling.split_k > 1) continue;
        ASSERT_NE(generate(one.plan).text.find("void convert_run("), std::string::npos) << to_string(one.plan.spec);
        ++(one.geometry().loads_pairs() ? pairs : pixels);
      }
    }
    EXPECT_GT(pixels, 0u) << type;
    EXPECT_EQ(pairs > 0, std::string(type) != "f32") << type;
  }
}

}  // namespace
}  // namespace jitconv::codegen
