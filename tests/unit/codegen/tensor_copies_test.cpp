// Copies of pixels as they lie in x (Pixels::copied): every pixel that is read of a copy was copied, and copies lie
// where nothing else does. Those that are boxes have tensor_boxes_test.cpp. Restates Part and convert_run() of
// templates/tensor_copy_windows.cu.in and tensor_convert_*.cu.in.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <vector>

#include "codegen/arithmetic.h"
#include "codegen/emit.h"
#include "codegen/source.h"
#include "unit/codegen/tensor_candidates.h"

namespace jitconv::codegen {
namespace {

using test::TensorCandidate;

constexpr std::int64_t kCopyUnit = 16;  // bytes: of addresses and lengths

/// What is copied of each channel's plane for a run and a filter row.
struct Part {
  std::int64_t first, end;
};

Part part_of(const TensorCandidate& one, std::int64_t run_first, std::int64_t r) {
  const ConvSpec& spec = one.spec;
  const std::int64_t q = output_shape(spec).w, pitch = WgmmaTiling::pitch(spec), width = spec.input.w;
  const std::int64_t plane = spec.input.h * width, vector = kCopyUnit / element_bytes(spec.dtype);
  const auto within_row = [width](std::int64_t column) { return std::clamp<std::int64_t>(column, 0, width); };
  const std::int64_t row = run_first / q, column = run_first % q, last = column + one.tiling.run_pixels(spec) - 1;
  const auto row_of_x = [&](std::int64_t p) { return p * spec.stride.h - spec.padding.top + r * spec.dilation.h; };
  const std::int64_t begin = row_of_x(row) * width + within_row(column * spec.stride.w - spec.padding.left);
  const std::int64_t end = row_of_x(row + last / pitch) * width +
                           within_row(last % pitch * spec.stride.w - spec.padding.left + WgmmaTiling::phases(spec));
  const std::int64_t first = begin < 0 ? 0 : begin / vector * vector;
  return {first, std::max(first, end < plane ? ceil_div(end, vector) * vector : plane)};
}

/// Whether each pixel of the run that lies in x is part of what is copied.
bool holds_all_pixels(const TensorCandidate& one, std::int64_t run_first, std::int64_t r, const Part& part) {
  const ConvSpec& spec = one.spec;
  const std::int64_t q = output_shape(spec).w, pitch = WgmmaTiling::pitch(spec), column_first = run_first % q;
  for (int phase = 0; phase < WgmmaTiling::phases(spec); ++phase) {
    for (std::int64_t pixel = 0; pixel < one.tiling.run_pixels(spec); ++pixel) {
      const std::int64_t row = run_first / q + (column_first + pixel) / pitch, column = (column_first + pixel) % pitch;
      const std::int64_t h = row * spec.stride.h - spec.padding.top + r * spec.dilation.h;
      const std::int64_t w = column * spec.stride.w - spec.padding.left + phase;
      if (h < 0 || h >= spec.input.h || w < 0 || w >= spec.input.w) continue;
      const std::int64_t place = h * spec.input.w + w;
      if (place < part.first || place >= part.end) return false;
    }
  }
  return true;
}

std::vector<TensorCandidate> candidates_with_copies() {
  std::vector<TensorCandidate> some;
  for (TensorCandidate& one : test::some_tensor_candidates())
    if (one.tiling.copies_pixels()) some.push_back(std::move(one));
  return some;
}

RC_GTEST_PROP(TensorCopiesProperty, HoldEveryPixelOfAWindow, ()) {
  for (const TensorCandidate& one : candidates_with_copies()) {
    const WgmmaTiling& t = one.tiling;
    const ConvSpec& spec = one.spec;
    if (t.images > 0 || t.copies_boxes(spec)) continue;
    const std::int64_t vector = kCopyUnit / element_bytes(spec.dtype);
    const std::int64_t runs = t.tiles_of_plane(spec) * t.runs(), stride = std::max<std::int64_t>(1, runs / 50);
    for (std::int64_t run = 0; run < runs; run += stride) {
      for (std::int64_t r = 0; r < spec.weight.r; r += t.filter_rows) {
        const Part part = part_of(one, run * t.window, r);
        RC_ASSERT(part.end - part.first <= t.raw_pitch(spec));
        RC_ASSERT(part.first % vector == 0 && (part.end - part.first) % vector == 0);
        // Nothing is copied where a run lies below x.
        RC_ASSERT(part.end <= spec.input.h * spec.input.w || part.end == part.first);
        RC_ASSERT(holds_all_pixels(one, run * t.window, r, part));
      }
    }
  }
}

// What nobody rounds the instruction cuts off, which no bound of an error shows.
RC_GTEST_PROP(TensorCopiesProperty, AreRoundedOnTheWayOrWhenTheyAreConverted, ()) {
  for (const TensorCandidate& one : candidates_with_copies()) {
    if (WgmmaTiling::loads_pairs(one.spec)) continue;
    const std::string text = emit_tensor(one.plan);
    const bool converts = text.find("operand = operand_row(channel);") != std::string::npos;
    RC_ASSERT(converts != one.tiling.copies_boxes(one.spec));
    RC_ASSERT(converts != (text.find("__float_as_uint(channel[0])") != std::string::npos));
  }
}

RC_GTEST_PROP(TensorCopiesProperty, OfImagesAreWholeVectors, ()) {
  for (const TensorCandidate& one : candidates_with_copies()) {
    const WgmmaTiling& t = one.tiling;
    const ConvSpec& spec = one.spec;
    if (t.images == 0) continue;
    const std::int64_t plane = spec.input.h * spec.input.w * element_bytes(spec.dtype);
    RC_ASSERT(t.raw_pitch(spec) * element_bytes(spec.dtype) == plane);
    // A chunk's channels, the last chunk's, and where chunks, groups and images start.
    RC_ASSERT(t.chunk_channels(spec) * plane % kCopyUnit == 0);
    RC_ASSERT(spec.weight.c % t.chunk_channels(spec) * plane % kCopyUnit == 0);
    RC_ASSERT(spec.weight.c * plane % kCopyUnit == 0);
    RC_ASSERT(t.raw_run_elements(spec) == t.images * t.chunk_channels(spec) * t.raw_pitch(spec));
  }
}

RC_GTEST_PROP(TensorCopiesProperty, LieBetweenWeightsAndStaging, ()) {
  for (const TensorCandidate& one : candidates_with_copies()) {
    const WgmmaTiling& t = one.tiling;
    const ConvSpec& spec = one.spec;
    constexpr int kWarps = 4;
    RC_ASSERT(spec.input_layout == Layout::nchw && t.team_warps == 1);
    RC_ASSERT(t.stages >= kWarps);  // a warp's next stage is never the one it fills
    RC_ASSERT(t.raw_bytes(spec) % kCopyUnit == 0 && t.raw_first_byte(spec) % kCopyUnit == 0);
    RC_ASSERT(t.raw_bytes(spec) >= t.runs() * t.raw_run_elements(spec) * element_bytes(spec.dtype));
    RC_ASSERT(t.raw_first_byte(spec) >= t.weights_first_byte(spec) + t.kept_weight_bytes(spec));
    RC_ASSERT(t.staging_first_byte(spec) >= t.raw_first_byte(spec) + kWarps * t.copies_ahead * t.raw_bytes(spec));
    const int barriers = 2 * t.stages + kWarps * t.copies_ahead + (t.resident ? 1 : 0);
    RC_ASSERT(t.shared_bytes(spec) >= t.barriers_first_byte(spec) + 8 * barriers);
  }
}

// Words of two 16-bit pixels have a text of their own.
TEST(TensorCopies, BecomeOperandRowsOfEveryType) {
  for (const char* type : {"f32", "f16", "bf16"}) {
    std::size_t pairs = 0, pixels = 0;
    for (const char* shape : {"input=2,24,16,34 weight=40,24,3,3", "input=2,24,16,34 weight=40,24,3,2"}) {
      for (const TensorCandidate& one :
           test::tensor_candidates(parse_spec(std::string(shape) + " math=tf32 dtype=" + type))) {
        if (!one.tiling.copies_pixels() || one.tiling.splits > 1) continue;
        ASSERT_NE(generate(one.plan).text.find("void convert_run("), std::string::npos) << to_string(one.spec);
        ++(WgmmaTiling::loads_pairs(one.spec) ? pairs : pixels);
      }
    }
    EXPECT_GT(pixels, 0u) << type;
    EXPECT_EQ(pairs > 0, std::string(type) != "f32") << type;
  }
}

}  // namespace
}  // namespace jitconv::codegen
