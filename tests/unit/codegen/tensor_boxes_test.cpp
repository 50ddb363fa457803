// Copies of pixels that are boxes of x (copies_boxes): each pixel that is read of a box is the one of x that is meant,
// and what is asked for is what a tensor map can say. Restates templates/tensor_copy_boxes.cu.in,
// tensor_first_element.cu.in and convert_run() of tensor_convert_*.cu.in.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "codegen/arithmetic.h"
#include "codegen/emit.h"
#include "codegen/source.h"
#include "unit/codegen/tensor_candidates.h"

namespace jitconv::codegen {
namespace {

using test::map_of;
using test::some_that_copy_boxes;
using test::TensorCandidate;

constexpr std::int64_t kUnit = 16, kMostBox = 256, kBoxAlignment = 128;
constexpr std::int64_t kMostExpected = (1 << 20) - 1;  // bytes that a barrier can be told of at a time
constexpr int kLoadingWarps = 4;

/// A run of a tile's step: its image and group, its first output, its filter row and its first channel.
struct Run {
  std::int64_t n, group, first, r, c_first;
};

Run some_run(const TensorCandidate& one) {
  const WgmmaTiling& t = one.tiling;
  const ConvSpec& spec = one.spec;
  const std::int64_t runs = t.tiles_of_plane(spec) * t.runs(), chunks = ceil_div(spec.weight.c, t.chunk_channels(spec));
  // Those at a plane's ends are as likely as all between.
  const int where = *rc::gen::inRange(0, 3);
  const std::int64_t run = where == 0 ? 0 : where == 1 ? runs - 1 : *rc::gen::inRange<std::int64_t>(0, runs);
  return {*rc::gen::inRange<std::int64_t>(0, spec.input.n), *rc::gen::inRange<std::int64_t>(0, spec.groups),
          run * t.window, t.filter_rows == 1 ? *rc::gen::inRange<std::int64_t>(0, spec.weight.r) : 0,
          *rc::gen::inRange<std::int64_t>(0, chunks) * t.chunk_channels(spec)};
}

std::int64_t first_element(const TensorCandidate& one, const Run& run) {
  const ConvSpec& spec = one.spec;
  const std::int64_t q = output_shape(spec).w, row = run.first / q, column = run.first % q;
  const std::int64_t first_column =
      std::clamp<std::int64_t>(column * spec.stride.w - spec.padding.left, 0, spec.input.w);
  const std::int64_t begin =
      (row * spec.stride.h - spec.padding.top + run.r * spec.dilation.h) * spec.input.w + first_column;
  const std::int64_t vector = kUnit / element_bytes(spec.dtype);
  return begin < 0 ? 0 : begin / vector * vector;
}

std::array<std::int64_t, 3> box_first(const TensorCandidate& one, const Run& run) {
  const ConvSpec& spec = one.spec;
  const std::int64_t plane = (run.n * spec.groups + run.group) * spec.weight.c + run.c_first;
  if (!one.tiling.copies_rows(spec)) return {first_element(one, run), plane, 0};
  return {0, run.first / output_shape(spec).w - spec.padding.top / spec.stride.h, plane};
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
std::int64_t raw_place(const TensorCandidate& one, const Run& run, std::int64_t row, std::int64_t h, std::int64_t w) {
  if (one.tiling.copies_rows(one.spec)) return (row - run.first / output_shape(one.spec).w) * one.spec.input.w + w;
  return h * one.spec.input.w + w - first_element(one, run);
}

RC_GTEST_PROP(TensorBoxesProperty, HoldEveryPixelThatIsRead, ()) {
  for (const TensorCandidate& one : some_that_copy_boxes()) {
    const WgmmaTiling& t = one.tiling;
    const ConvSpec& spec = one.spec;
    const TensorMapShape map = map_of(one, Tensor::x);
    const Run run = some_run(one);
    const std::array<std::int64_t, 3> first = box_first(one, run);
    const std::int64_t q = output_shape(spec).w, pitch = WgmmaTiling::pitch(spec);
    const std::int64_t channels = std::min<std::int64_t>(t.chunk_channels(spec), spec.weight.c - run.c_first);
    for (int phase = 0; phase < WgmmaTiling::phases(spec); ++phase) {
      for (std::int64_t pixel = 0; pixel < t.run_pixels(spec); ++pixel) {
        const std::int64_t row = run.first / q + (run.first % q + pixel) / pitch;
        const std::int64_t column = (run.first % q + pixel) % pitch;
        const std::int64_t h = row * spec.stride.h - spec.padding.top + run.r * spec.dilation.h;
        const std::int64_t w = column * spec.stride.w - spec.padding.left + phase;
        if (h < 0 || h >= spec.input.h || w < 0 || w >= spec.input.w) continue;
        const std::int64_t place = raw_place(one, run, row, h, w);
        RC_ASSERT(place >= 0 && place < t.raw_pitch(spec));
        for (const std::int64_t c : {std::int64_t{0}, channels - 1}) {
          const std::int64_t plane = (run.n * spec.groups + run.group) * spec.weight.c + run.c_first + c;
          const auto element = element_at(map, first, c * t.raw_pitch(spec) + place);
          RC_ASSERT(element.has_value());
          RC_ASSERT(*element == (plane * spec.input.h + h) * spec.input.w + w);
        }
      }
    }
  }
}

// Words of two pixels: each is read at an even place.
RC_GTEST_PROP(TensorBoxesProperty, HoldPairsAtWords, ()) {
  for (const TensorCandidate& one : some_that_copy_boxes()) {
    if (!WgmmaTiling::loads_pairs(one.spec)) continue;
    const Run run = some_run(one);
    RC_ASSERT(one.tiling.raw_pitch(one.spec) % 2 == 0);
    for (std::int64_t row = 0; row < 3; ++row)
      RC_ASSERT(raw_place(one, run, run.first / output_shape(one.spec).w + row, row, 0) % 2 == 0);
  }
}

// What KernelState asks of every map, and what the engine can bring.
RC_GTEST_PROP(TensorBoxesProperty, AreWhatTensorMapsCanSay, ()) {
  std::vector<TensorCandidate> some = some_that_copy_boxes();
  for (TensorCandidate& one : test::some_with_raw_weights()) some.push_back(std::move(one));
  for (const TensorCandidate& one : some) {
    const ConvSpec& spec = one.spec;
    int maps = 0;
    for (const KernelEntry& entry : tensor_entries(one.plan)) {
      for (const Argument& argument : entry.arguments) {
        const TensorMapShape& map = argument.map;
        // tensor_walks_test.cpp has walks, tensor_store_boxes_test.cpp outputs.
        if (map.rank == 0 || map.walk || argument.tensor == Tensor::y) continue;
        ++maps;
        RC_ASSERT(!argument.written() && spec.alignment % kUnit == 0);
        RC_ASSERT(map.rank >= 2 && map.rank <= TensorMapShape::kMostRank);
        RC_ASSERT(map.element_bytes == element_bytes(spec.dtype) && map.strides[0] == 1);
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
        const std::int64_t elements = x ? spec.input.n * spec.input.c * spec.input.h * spec.input.w
                                        : spec.weight.k * spec.weight.c * spec.weight.r * spec.weight.s;
        RC_ASSERT(last < elements);
        RC_ASSERT(x || argument.tensor == Tensor::w);
      }
    }
    RC_ASSERT(maps == (one.tiling.raw_weights ? 1 : 0) + (one.tiling.copies_boxes(spec) ? 1 : 0));
  }
}

RC_GTEST_PROP(TensorBoxesProperty, LieInSlotsOfTheirOwn, ()) {
  for (const TensorCandidate& one : some_that_copy_boxes()) {
    const WgmmaTiling& t = one.tiling;
    const ConvSpec& spec = one.spec;
    const TensorMapShape map = map_of(one, Tensor::x);
    RC_ASSERT(map.swizzle_bytes == 0 && t.images == 0 && spec.input_layout == Layout::nchw);
    // All are of floats, and conversion only moves what the copy has rounded.
    const bool moves = emit_tensor(one.plan).find("make_uint4(__float_as_uint(channel[0])") != std::string::npos;
    RC_ASSERT(spec.dtype == DataType::f32 && map.element_bytes == 4 && map.rounds_to_tf32 && moves);
    // What convert_run() takes to be channels, and what a barrier expects of each run.
    std::int64_t elements = 1;
    for (std::size_t i = 0; i < static_cast<std::size_t>(map.rank); ++i) elements *= map.box[i];
    RC_ASSERT(map.box[static_cast<std::size_t>(map.rank - 1)] == t.chunk_channels(spec));
    RC_ASSERT(elements == t.chunk_channels(spec) * t.raw_pitch(spec));
    RC_ASSERT(t.raw_run_elements(spec) >= elements);
    for (int slot = 0; slot < kLoadingWarps * t.copies_ahead; ++slot) {
      for (int run = 0; run < t.runs(); ++run) {
        const std::int64_t first = t.raw_first_byte(spec) + slot * t.raw_bytes(spec) +
                                   run * t.raw_run_elements(spec) * element_bytes(spec.dtype);
        RC_ASSERT(first % kBoxAlignment == 0);
        RC_ASSERT(first + elements * element_bytes(spec.dtype) <=
                  t.raw_first_byte(spec) + (slot + 1) * t.raw_bytes(spec));
      }
    }
    RC_ASSERT(t.raw_first_byte(spec) >= t.stages * t.stage_bytes(spec) + t.kept_weight_bytes(spec));
    RC_ASSERT(t.staging_first_byte(spec) >=
              t.raw_first_byte(spec) + kLoadingWarps * t.copies_ahead * t.raw_bytes(spec));
  }
}

// Rows are no more than a run needs: one more, of any run, would be read by none.
RC_GTEST_PROP(TensorBoxesProperty, OfRowsHaveNoneInVain, ()) {
  for (const TensorCandidate& one : some_that_copy_boxes()) {
    const WgmmaTiling& t = one.tiling;
    const ConvSpec& spec = one.spec;
    if (!t.copies_rows(spec)) continue;
    RC_ASSERT(spec.weight.r == 1 && spec.stride.h > 1 && spec.padding.top % spec.stride.h == 0);
    const std::int64_t q = output_shape(spec).w, pitch = WgmmaTiling::pitch(spec);
    std::int64_t most = 0;
    for (std::int64_t column = 0; column < q; ++column)
      most = std::max(most, (column + t.run_pixels(spec) - 1) / pitch + 1);
    RC_ASSERT(t.raw_rows(spec) == most && t.raw_pitch(spec) == most * spec.input.w);
    RC_ASSERT(std::max(most, spec.input.w) <= kMostBox);
  }
}

TEST(TensorBoxes, AreOfRowsWhereOneFilterRowMeetsEveryOther) {
  const WgmmaTiling t{.columns = 64, .window = 56, .pixels = WgmmaTiling::Pixels::copied};
  const auto rows = [&t](const std::string& text) { return t.copies_rows(parse_spec(text + " math=tf32")); };
  EXPECT_TRUE(rows("input=2,32,40,40 weight=32,32,1,1 stride=2"));
  EXPECT_TRUE(rows("input=2,32,40,40 weight=32,32,1,3 stride=2,1 padding=4,1"));
  EXPECT_FALSE(rows("input=2,32,40,40 weight=32,32,1,1 stride=1,2"));
  EXPECT_FALSE(rows("input=2,32,40,40 weight=32,32,1,1 stride=2 padding=1"));  // rows between those that are met
  EXPECT_FALSE(rows("input=2,32,40,40 weight=32,32,2,1 stride=2"));
  EXPECT_FALSE(rows("input=2,32,40,42 weight=32,32,1,1 stride=2"));            // rows of no whole vectors
  EXPECT_FALSE(rows("input=2,32,40,40 weight=32,32,1,1 stride=2 dtype=f16"));  // of 16 bits nothing comes as a box
  WgmmaTiling images = t;
  images.images = 1;
  EXPECT_FALSE(images.copies_rows(parse_spec("input=2,32,40,40 weight=32,32,1,1 stride=2 math=tf32")));
}

// No larger than a box may be, in the layout that is copied.
TEST(TensorBoxes, AreAtMost256Elements) {
  const auto boxes = [](int columns, const std::string& text) {
    const WgmmaTiling t{.columns = columns, .window = columns - 8, .pixels = WgmmaTiling::Pixels::copied};
    return t.copies_boxes(parse_spec(text + " math=tf32"));
  };
  const std::string plane = "input=2,32,1,1000 weight=32,32,1,1", rows = "input=2,32,600,256 weight=32,32,1,1 stride=2";
  EXPECT_TRUE(boxes(240, plane));
  EXPECT_FALSE(boxes(256, plane));
  EXPECT_TRUE(boxes(256, rows));
  EXPECT_FALSE(boxes(256, "input=2,32,600,260 weight=32,32,1,1 stride=2"));
  const WgmmaTiling loads{.columns = 64, .window = 56};
  EXPECT_FALSE(loads.copies_boxes(parse_spec(rows + " math=tf32")));
}

// A warp asks for the first steps before the block is ready, into the slots that it takes them from.
RC_GTEST_PROP(TensorBoxesProperty, FirstAreAskedForBeforeTheBlockIsReady, ()) {
  for (const TensorCandidate& one : test::some_tensor_candidates()) {
    const std::string text = generate(one.plan).text;
    const std::size_t kernel =
        text.rfind("extern \"C\" __global__", text.find("multiply_begin();", text.find("sum[kColumns")));
    const std::size_t ask = text.find("copy_pixels(", kernel), ready = text.find("__syncthreads();", kernel);
    RC_ASSERT((ask < ready) == one.tiling.copies_pixels());
    if (!one.tiling.copies_pixels()) continue;
    const std::size_t init = text.find("barrier_init(copied + slot, ", kernel);
    RC_ASSERT(init < text.find("barrier_init_visible();", init) && text.find("barrier_init_visible();", init) < ask);
    const std::string arrivals = one.tiling.images > 0 ? "1);" : "kRuns);";
    RC_ASSERT(text.compare(init + 28, arrivals.size(), arrivals) == 0);
  }
}

}  // namespace
}  // namespace jitconv::codegen
