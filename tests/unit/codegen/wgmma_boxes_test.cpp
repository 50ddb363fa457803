// Copies of pixels that are boxes of x (copies_boxes): each pixel that is read of a box is the one of x that is meant,
// and what is asked for is what a tensor map can say. Restates templates/wgmma/copy_boxes.cu.in,
// first_element.cu.in and convert_run() of convert_*.cu.in.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "codegen/arithmetic.h"
#include "codegen/source.h"
#include "codegen/wgmma/emit.h"
#include "codegen/wgmma/limits.h"
#include "codegen/wgmma/memory.h"
#include "unit/codegen/wgmma_candidates.h"

namespace jitconv::codegen {
namespace {

using test::map_of;
using test::some_that_copy_boxes;
using test::WgmmaCandidate;

constexpr std::int64_t kUnit = 16, kMostBox = 256, kBoxAlignment = 128;
constexpr std::int64_t kMostExpected = (1 << 20) - 1;  // bytes that a barrier can be told of at a time

/// A run of a tile's step: its image and group, its first output, its filter row and its first channel.
struct BoxRun {
  std::int64_t n, group, first, r, c_first;
};

BoxRun some_run(const WgmmaCandidate& one) {
  const WgmmaTiling& t = one.tiling;
  const Problem& problem = one.problem;
  const WgmmaGeometry g = one.geometry();
  const std::int64_t runs = g.tiles_of_plane() * t.runs(), chunks = ceil_div(problem.c, g.chunk_channels());
  // Those at a plane's ends are as likely as all between.
  const int where = *rc::gen::inRange(0, 3);
  const std::int64_t run = where == 0 ? 0 : where == 1 ? runs - 1 : *rc::gen::inRange<std::int64_t>(0, runs);
  return {*rc::gen::inRange<std::int64_t>(0, problem.n), *rc::gen::inRange<std::int64_t>(0, problem.groups),
          run * t.tile.window, t.pipeline.filter_rows == 1 ? *rc::gen::inRange<std::int64_t>(0, problem.rows.taps) : 0,
          *rc::gen::inRange<std::int64_t>(0, chunks) * g.chunk_channels()};
}

std::int64_t first_element(const WgmmaCandidate& one, const BoxRun& run) {
  const Problem& problem = one.problem;
  const std::int64_t q = problem.columns.output, row = run.first / q, column = run.first % q;
  const std::int64_t first_column =
      std::clamp<std::int64_t>(column * problem.columns.stride - problem.columns.pad, 0, problem.columns.input);
  const std::int64_t begin =
      (row * problem.rows.stride - problem.rows.pad + run.r * problem.rows.dilation) * problem.columns.input +
      first_column;
  const std::int64_t vector = kUnit / element_bytes(problem.input.type);
  return begin < 0 ? 0 : begin / vector * vector;
}

std::array<std::int64_t, 3> box_first(const WgmmaCandidate& one, const BoxRun& run) {
  const Problem& problem = one.problem;
  const std::int64_t plane = (run.n * problem.groups + run.group) * problem.c + run.c_first;
  if (!one.geometry().pixels().copies_rows()) return {first_element(one, run), plane, 0};
  return {0, run.first / problem.columns.output - problem.rows.pad / problem.rows.stride, plane};
}

/// Which element of x a place of the box holds; none where the box reaches out of the tensor.
std::optional<std::int64_t> element_at(const TensorMapShape& map, const std::array<std::int64_t, 3>& first,
                                       std::int64_t place) {
  std::int64_t element = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(map.rank); ++i) {
    const std::int64_t index = first[i] + place % map.box[i];
    if (index < 0 || index >= map.extents[i]) return {};
    element += index * map.strides[i];
    place /= map.box[i];
  }
  return place == 0 ? std::optional(element) : std::nullopt;
}

/// Where a pixel is read of a channel's part of the box.
std::int64_t raw_place(const WgmmaCandidate& one, const BoxRun& run, std::int64_t row, std::int64_t h, std::int64_t w) {
  if (one.geometry().pixels().copies_rows())
    return (row - run.first / one.problem.columns.output) * one.problem.columns.input + w;
  return h * one.problem.columns.input + w - first_element(one, run);
}

RC_GTEST_PROP(WgmmaBoxesProperty, HoldEveryPixelThatIsRead, ()) {
  for (const WgmmaCandidate& one : some_that_copy_boxes()) {
    const Problem& problem = one.problem;
    const WgmmaGeometry g = one.geometry();
    const TensorMapShape map = map_of(one, Tensor::x);
    const BoxRun run = some_run(one);
    const std::array<std::int64_t, 3> first = box_first(one, run);
    const std::int64_t q = problem.columns.output, pitch = g.pitch();
    const std::int64_t channels = std::min<std::int64_t>(g.chunk_channels(), problem.c - run.c_first);
    for (int phase = 0; phase < g.phases(); ++phase) {
      for (std::int64_t pixel = 0; pixel < g.run_pixels(); ++pixel) {
        const std::int64_t row = run.first / q + (run.first % q + pixel) / pitch;
        const std::int64_t column = (run.first % q + pixel) % pitch;
        const std::int64_t h = row * problem.rows.stride - problem.rows.pad + run.r * problem.rows.dilation;
        const std::int64_t w = column * problem.columns.stride - problem.columns.pad + phase;
        if (h < 0 || h >= problem.rows.input || w < 0 || w >= problem.columns.input) continue;
        const std::int64_t place = raw_place(one, run, row, h, w);
        RC_ASSERT(place >= 0 && place < g.pixels().raw_pitch());
        for (const std::int64_t c : {std::int64_t{0}, channels - 1}) {
          const std::int64_t plane = (run.n * problem.groups + run.group) * problem.c + run.c_first + c;
          const auto element = element_at(map, first, c * g.pixels().raw_pitch() + place);
          RC_ASSERT(element.has_value());
          RC_ASSERT(*element == (plane * problem.rows.input + h) * problem.columns.input + w);
        }
      }
    }
  }
}

// Words of two pixels: each is read at an even place.
RC_GTEST_PROP(WgmmaBoxesProperty, HoldPairsAtWords, ()) {
  for (const WgmmaCandidate& one : some_that_copy_boxes()) {
    if (!one.geometry().loads_pairs()) continue;
    const BoxRun run = some_run(one);
    RC_ASSERT(one.geometry().pixels().raw_pitch() % 2 == 0);
    for (std::int64_t row = 0; row < 3; ++row)
      RC_ASSERT(raw_place(one, run, run.first / one.problem.columns.output + row, row, 0) % 2 == 0);
  }
}

// What KernelState asks of every map, and what the engine can bring.
RC_GTEST_PROP(WgmmaBoxesProperty, AreWhatTensorMapsCanSay, ()) {
  std::vector<WgmmaCandidate> some = some_that_copy_boxes();
  for (WgmmaCandidate& one : test::some_with_unpacked_weights()) some.push_back(std::move(one));
  for (const WgmmaCandidate& one : some) {
    const Problem& problem = one.problem;
    int maps = 0;
    for (const Argument& argument : test::all_arguments(one.plan)) {
      const TensorMapShape& map = argument.map;
      // wgmma_im2col_test.cpp has im2col maps, wgmma_store_boxes_test.cpp outputs.
      if (map.rank == 0 || map.im2col || argument.tensor == Tensor::y) continue;
      ++maps;
      RC_ASSERT(!argument.written() && problem.alignment % kUnit == 0);
      RC_ASSERT(map.rank >= 2 && map.rank <= TensorMapShape::kMostRank);
      RC_ASSERT(map.element_bytes == element_bytes(problem.input.type) && map.strides[0] == 1);
      std::int64_t last = 0, bytes = map.element_bytes;
      for (std::size_t i = 0; i < static_cast<std::size_t>(map.rank); ++i) {
        RC_ASSERT(map.extents[i] >= 1 && map.extents[i] <= std::int64_t{1} << 32);
        RC_ASSERT(map.box[i] >= 1 && map.box[i] <= kMostBox);
        if (i > 0) RC_ASSERT(map.strides[i] * map.element_bytes % kUnit == 0);
        RC_ASSERT(map.strides[i] * map.element_bytes < std::int64_t{1} << 40);
        last += (map.extents[i] - 1) * map.strides[i];
        bytes *= map.box[i];
      }
      RC_ASSERT(map.box[0] * map.element_bytes % kUnit == 0 && bytes <= kMostExpected);
      const bool x = argument.tensor == Tensor::x;
      const std::int64_t elements = x ? problem.input_elements() : problem.weight_elements();
      RC_ASSERT(last < elements);
      RC_ASSERT(x || argument.tensor == Tensor::w);
    }
    RC_ASSERT(maps == (one.tiling.packs_weights() ? 0 : 1) + (one.geometry().pixels().copies_boxes() ? 1 : 0));
  }
}

RC_GTEST_PROP(WgmmaBoxesProperty, LieInSlotsOfTheirOwn, ()) {
  for (const WgmmaCandidate& one : some_that_copy_boxes()) {
    const WgmmaTiling& t = one.tiling;
    const Problem& problem = one.problem;
    const WgmmaGeometry g = one.geometry();
    const WgmmaMemory memory(g);
    const TensorMapShape map = map_of(one, Tensor::x);
    RC_ASSERT(map.swizzle_bytes == 0 && t.tile.images == 0 && problem.input.layout() == Layout::nchw);
    // All are of floats, and conversion only moves what the copy has rounded.
    const bool moves =
        test::convolution_text(one).text.find("make_uint4(__float_as_uint(channel[0])") != std::string::npos;
    RC_ASSERT(problem.input.type == DataType::f32 && map.element_bytes == 4 && map.rounds_to_tf32 && moves);
    // What convert_run() takes to be channels, and what a barrier expects of each run.
    std::int64_t elements = 1;
    for (std::size_t i = 0; i < static_cast<std::size_t>(map.rank); ++i) elements *= map.box[i];
    RC_ASSERT(map.box[static_cast<std::size_t>(map.rank - 1)] == g.chunk_channels());
    RC_ASSERT(elements == g.chunk_channels() * g.pixels().raw_pitch());
    RC_ASSERT(g.pixels().raw_run_elements() >= elements);
    for (int slot = 0; slot < test::kProducerWarps * t.producer.copies_ahead; ++slot) {
      for (int run = 0; run < t.runs(); ++run) {
        const std::int64_t first = memory.raw_first_byte() + slot * g.pixels().raw_bytes() +
                                   run * g.pixels().raw_run_elements() * element_bytes(problem.input.type);
        RC_ASSERT(first % kBoxAlignment == 0);
        RC_ASSERT(first + elements * element_bytes(problem.input.type) <=
                  memory.raw_first_byte() + (slot + 1) * g.pixels().raw_bytes());
      }
    }
    RC_ASSERT(memory.raw_first_byte() >= t.pipeline.stages * memory.stage_bytes() + g.kept_weight_bytes());
    RC_ASSERT(memory.staging_first_byte() >=
              memory.raw_first_byte() + test::kProducerWarps * t.producer.copies_ahead * g.pixels().raw_bytes());
  }
}

// Rows are no more than a run needs: one more, of any run, would be read by none.
RC_GTEST_PROP(WgmmaBoxesProperty, OfRowsHaveNoneInVain, ()) {
  for (const WgmmaCandidate& one : some_that_copy_boxes()) {
    const Problem& problem = one.problem;
    const WgmmaGeometry g = one.geometry();
    if (!g.pixels().copies_rows()) continue;
    RC_ASSERT(problem.rows.taps == 1 && problem.rows.stride > 1 && problem.rows.pad % problem.rows.stride == 0);
    const std::int64_t q = problem.columns.output, pitch = g.pitch();
    std::int64_t most = 0;
    for (std::int64_t column = 0; column < q; ++column)
      most = std::max(most, (column + g.run_pixels() - 1) / pitch + 1);
    RC_ASSERT(g.pixels().raw_rows() == most && g.pixels().raw_pitch() == most * problem.columns.input);
    RC_ASSERT(std::max(most, problem.columns.input) <= kMostBox);
  }
}

TEST(WgmmaBoxes, AreOfRowsWhereOneFilterRowMeetsEveryOther) {
  WgmmaTiling t;
  t.tile.columns = 64, t.tile.window = 56, t.producer.pixels = WgmmaTiling::Pixels::converted;
  const auto rows = [&t](const std::string& text) {
    const Problem problem = lower(parse_spec(text + " math=tf32"));
    return WgmmaGeometry(problem, t).pixels().copies_rows();
  };
  EXPECT_TRUE(rows("input=2,32,40,40 weight=32,32,1,1 stride=2"));
  EXPECT_TRUE(rows("input=2,32,40,40 weight=32,32,1,3 stride=2,1 padding=4,1"));
  EXPECT_FALSE(rows("input=2,32,40,40 weight=32,32,1,1 stride=1,2"));
  EXPECT_FALSE(rows("input=2,32,40,40 weight=32,32,1,1 stride=2 padding=1"));  // rows between those that are met
  EXPECT_FALSE(rows("input=2,32,40,40 weight=32,32,2,1 stride=2"));
  EXPECT_FALSE(rows("input=2,32,40,42 weight=32,32,1,1 stride=2"));            // rows of no whole vectors
  EXPECT_FALSE(rows("input=2,32,40,40 weight=32,32,1,1 stride=2 dtype=f16"));  // of 16 bits nothing comes as a box
  t.tile.images = 1;
  EXPECT_FALSE(rows("input=2,32,40,40 weight=32,32,1,1 stride=2"));
}

// No larger than a box may be, in the layout that is copied.
TEST(WgmmaBoxes, AreAtMost256Elements) {
  using Pixels = WgmmaTiling::Pixels;
  const auto boxes = [](int columns, const std::string& text, Pixels pixels = Pixels::converted) {
    WgmmaTiling t;
    t.tile.columns = columns, t.tile.window = columns - 8, t.producer.pixels = pixels;
    const Problem problem = lower(parse_spec(text + " math=tf32"));
    return WgmmaGeometry(problem, t).pixels().copies_boxes();
  };
  const std::string plane = "input=2,32,1,1000 weight=32,32,1,1", rows = "input=2,32,600,256 weight=32,32,1,1 stride=2";
  EXPECT_TRUE(boxes(240, plane));
  EXPECT_FALSE(boxes(256, plane));
  // Up to three elements of the plane before come, too.
  EXPECT_TRUE(boxes(248, "input=2,32,1,1001 weight=32,32,1,1"));
  EXPECT_FALSE(boxes(256, "input=2,32,1,1001 weight=32,32,1,1"));
  EXPECT_FALSE(boxes(240, "input=2,34,1,1001 weight=32,34,1,1")) << "channels of one place would have two";
  EXPECT_TRUE(boxes(256, rows));
  EXPECT_FALSE(boxes(256, "input=2,32,600,260 weight=32,32,1,1 stride=2"));
  EXPECT_FALSE(boxes(64, rows, Pixels::loaded));
}

// Channels whose planes start at the same place of a vector are one box, and its floats come rounded.
TEST(WgmmaBoxes, OfPeriodsHoldWhatIsBeforeTheirPlanes) {
  WgmmaTiling t;
  t.tile.columns = 240, t.tile.window = 232, t.producer.pixels = WgmmaTiling::Pixels::converted;
  const Problem problem = lower(parse_spec("input=2,32,1,1001 weight=32,32,1,1 math=tf32"));
  const WgmmaGeometry g(problem, t);
  EXPECT_TRUE(g.pixels().copies_periods());
  EXPECT_EQ(g.pixels().raw_pitch(), 248) << "a run may start three elements behind a vector, and its plane as many";
  EXPECT_GE(g.pixels().raw_run_elements(), 248 * g.chunk_channels());
  int maps = 0;
  for (const Argument& argument : wgmma_arguments(g)) {
    if (argument.tensor != Tensor::x) continue;
    ++maps;
    const TensorMapShape& map = argument.map;
    EXPECT_EQ(map.rank, 3);
    EXPECT_EQ(map.extents[0], 4 * 1001);
    EXPECT_EQ(map.extents[1], 8);
    EXPECT_EQ(map.box[0], 248);
    EXPECT_EQ(map.box[1], g.chunk_channels() / 4);
    EXPECT_TRUE(map.rounds_to_tf32);
  }
  EXPECT_EQ(maps, 1);
}

// Aligned planes: windows start at vectors, and images, as groups, are whole periods of channels.
TEST(WgmmaBoxes, OfAlignedPlanesStartAtVectors) {
  const auto can = [](int window, const std::string& text) {
    WgmmaTiling t;
    t.tile.columns = 128, t.tile.window = window;
    const Problem problem = lower(parse_spec(text + " dtype=bf16"));
    return can_align_planes(WgmmaGeometry(problem, t));
  };
  EXPECT_TRUE(can(120, "input=2,72,18,22 weight=72,72,1,1"));
  EXPECT_FALSE(can(124, "input=2,72,18,22 weight=72,72,1,1"));
  EXPECT_FALSE(can(120, "input=2,71,18,22 weight=72,71,1,1"));
  EXPECT_FALSE(can(120, "input=2,72,18,24 weight=72,72,1,1")) << "planes are whole vectors";
}

// A warp asks for the first steps before the block is ready, into the slots that it takes them from.
RC_GTEST_PROP(WgmmaBoxesProperty, FirstAreAskedForBeforeTheBlockIsReady, ()) {
  for (const WgmmaCandidate& one : test::some_wgmma_candidates()) {
    const std::string text = generate(one.plan).text;
    const std::size_t kernel =
        text.rfind("extern \"C\" __global__", text.find("multiply_begin();", text.find("sum[kColumns")));
    const std::size_t ask = text.find("copy_pixels(", kernel), ready = text.find("__syncthreads();", kernel);
    RC_ASSERT((ask < ready) == one.tiling.copies_pixels());
    if (!one.tiling.copies_pixels()) continue;
    const std::size_t init = text.find("barrier_init(copied + slot, ", kernel);
    RC_ASSERT(init < text.find("barrier_init_visible();", init) && text.find("barrier_init_visible();", init) < ask);
    const bool at_once = one.tiling.tile.images > 0 || one.geometry().pixels().copies_periods();
    const std::string arrivals = at_once ? "1);" : "kRuns);";
    RC_ASSERT(text.compare(init + 28, arrivals.size(), arrivals) == 0);
  }
}

}  // namespace
}  // namespace jitconv::codegen
