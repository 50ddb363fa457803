// Boxes of y that TMA stores: what they write, where they are staged, and who waits for whom.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <set>
#include <string>

#include "codegen/arithmetic.h"
#include "codegen/wgmma/geometry.h"
#include "codegen/wgmma/memory.h"
#include "codegen/wgmma/store.h"
#include "host/swizzle.h"
#include "unit/codegen/wgmma_candidates.h"
#include "unit/codegen/wgmma_runs.h"

namespace jitconv::codegen {
namespace {

using test::WgmmaCandidate;

constexpr std::int64_t kLine = 128;  // bytes
constexpr int kLanes = 32, kConsumerChannels = 64;

/// As box_place() of templates/wgmma/box_place.cu.in.
std::int64_t box_place(const PixelGrid& g, std::int64_t position, std::int64_t channel) {
  const std::int64_t row_channels = g.box_row_channels(),
                     pieces = test::kRowBytes / element_bytes(g.problem().output.type);
  const std::int64_t row = position * g.box_rows() + channel / row_channels;
  return row * row_channels + (channel % row_channels / pieces ^ row % 8) * pieces + channel % pieces;
}

/// Where a box begins, by its map's axes.
std::array<std::int64_t, 4> begin_of(const WgmmaCandidate& one, const test::Run& run, std::int64_t first,
                                     std::int64_t channel) {
  const Problem& problem = one.problem;
  const WgmmaGeometry g = one.geometry();
  const std::int64_t row_of_channels = channel / g.box_row_channels(), row = g.run_row();
  if (g.boxes_cross_rows()) return {0, row_of_channels, run.first + first, run.image};
  return {0, row_of_channels, run.first % row + first, run.image * problem.rows.output + run.first / row};
}

/// The element of y at a place of a box, -1 if it lies outside of the map.
std::int64_t element_of(const TensorMapShape& map, const std::array<std::int64_t, 4>& begin, std::int64_t position,
                        std::int64_t channel) {
  const std::array<std::int64_t, 4> at = {channel % map.box[0], begin[1] + channel / map.box[0], begin[2] + position,
                                          begin[3]};
  std::int64_t element = 0;
  for (std::size_t axis = 0; axis < at.size(); ++axis) {
    if (at[axis] >= map.extents[axis]) return -1;
    element += at[axis] * map.strides[axis];
  }
  return element;
}

// Hardware takes a box that begins before the tensor for an illegal instruction.
RC_GTEST_PROP(WgmmaStoreBoxesProperty, EachOutputIsInOneBox, ()) {
  test::SpecLimits limits;
  limits.batch = 2, limits.groups = 2, limits.outputs = 40;
  const std::vector<WgmmaCandidate> some = test::some_that_store_boxes(limits);
  if (some.empty()) return;
  const WgmmaCandidate& one = some[*rc::gen::inRange<std::size_t>(0, some.size())];
  const WgmmaTiling& t = one.tiling;
  const Problem& problem = one.problem;
  const WgmmaGeometry g = one.geometry();
  const WgmmaStore store(g);
  const TensorMapShape map = map_of(one, Tensor::y);
  const std::int64_t plane = g.plane(), group_k = problem.k, rows = problem.rows.output * g.run_row();
  const std::int64_t group = *rc::gen::inRange<std::int64_t>(0, problem.groups),
                     k_tile = *rc::gen::inRange<std::int64_t>(0, g.tiles_k()) * t.tile.channels;
  std::set<std::int64_t> stored;
  for (std::int64_t tile = 0; tile < g.tiles_of_images(); ++tile)
    for (int run_of_tile = 0; run_of_tile < t.runs(); ++run_of_tile) {
      const test::Run run = run_of(one, tile, run_of_tile);
      if (!g.boxes_cross_rows() && run.first >= rows) continue;  // the kernel asks for none
      for (std::int64_t k = k_tile; k < k_tile + t.tile.channels; k += kConsumerChannels)
        for (std::int64_t first = 0; first < t.tile.columns; first += store.store_columns()) {
          const std::array<std::int64_t, 4> begin = begin_of(one, run, first, group * group_k + k);
          for (const std::int64_t index : begin) RC_ASSERT(index >= 0 && index <= INT32_MAX);
          for (std::int64_t position = 0; position < store.store_columns(); ++position)
            for (std::int64_t channel = 0; channel < kConsumerChannels; ++channel) {
              const std::int64_t element = element_of(map, begin, position, channel);
              if (element < 0) continue;
              // What is there is this position's output of this channel.
              const std::int64_t at = run.first + first + position, p = at / g.run_row(), q = at % g.run_row();
              const std::int64_t output = run.image * plane + p * problem.columns.output + q;
              RC_ASSERT(element == output * problem.output_channels() + group * group_k + k + channel &&
                        k + channel < group_k);
              RC_ASSERT(stored.insert(element).second);
            }
        }
    }
  const std::int64_t channels = std::min<std::int64_t>(t.tile.channels, group_k - k_tile);
  RC_ASSERT(static_cast<std::int64_t>(stored.size()) == problem.n * plane * channels);
}

RC_GTEST_PROP(WgmmaStoreBoxesProperty, AreOfMapsThatTheDriverTakes, ()) {
  for (const WgmmaCandidate& one : test::some_that_store_boxes()) {
    const WgmmaTiling& t = one.tiling;
    const Problem& problem = one.problem;
    const WgmmaGeometry g = one.geometry();
    const TensorMapShape map = map_of(one, Tensor::y);
    RC_ASSERT(problem.alignment >= test::kRowBytes && !problem.epilogue.residual && t.split_k == 1 &&
              t.tile.images == 0);
    RC_ASSERT(map.rank == 4 && !map.im2col && !map.rounds_to_tf32 && map.swizzle_bytes == kLine);
    RC_ASSERT(map.element_bytes == element_bytes(problem.input.type) && map.strides[0] == 1);
    RC_ASSERT(map.box[0] * map.element_bytes == kLine && map.box_bytes() == WgmmaStore(g).box_bytes());
    std::int64_t last = 0;
    for (std::size_t axis = 0; axis < 4; ++axis) {
      RC_ASSERT(map.box[axis] >= 1 && map.box[axis] <= TensorMapShape::kMostBox && map.extents[axis] >= 1);
      if (axis > 0) RC_ASSERT(map.strides[axis] * map.element_bytes % test::kRowBytes == 0);
      last += (map.extents[axis] - 1) * map.strides[axis];
    }
    RC_ASSERT(last + 1 == problem.n * g.plane() * problem.output_channels());
  }
}

// Boxes are equal parts of a run, and runs of a row.
RC_GTEST_PROP(WgmmaStoreBoxesProperty, PartsOfRunsAreStaged, ()) {
  for (const WgmmaCandidate& one : test::some_that_store_boxes()) {
    const WgmmaTiling& t = one.tiling;
    const Problem& problem = one.problem;
    const WgmmaGeometry g = one.geometry();
    const WgmmaStore store(g);
    const std::int64_t q = problem.columns.output, unit = element_bytes(problem.input.type) == 2 ? 16 : 8;
    RC_ASSERT(t.tile.window == t.tile.columns && store.store_columns() > 0);
    RC_ASSERT(t.tile.columns % store.store_columns() == 0 && store.store_columns() % unit == 0);
    RC_ASSERT(store.box_bytes() <= 32 << 10 && store.box_bytes() % 1024 == 0);
    RC_ASSERT(WgmmaMemory(g).staging_first_byte() % 1024 == 0 && t.staged_boxes >= 2);
    if (g.row_padding() == 0)
      RC_ASSERT(g.run_row() == q);
    else
      RC_ASSERT(g.run_row() % t.tile.columns == 0 && g.run_row() >= q && g.run_row() < q + t.tile.columns);
  }
}

/// Boxes depend on the type alone.
Problem problem_of(DataType type) {
  ConvSpec spec = parse_spec("input=1,64,8,8 weight=64,64,1,1 output_layout=nhwc");
  spec.dtype = type;
  return lower(spec);
}

// As TMA reads a swizzled box: element after element of [position][channel].
TEST(WgmmaStoreBoxes, ChannelsAreStagedWhereTheCopyEngineReadsThem) {
  for (const DataType type : {DataType::f32, DataType::bf16}) {
    const Problem problem = problem_of(type);
    const PixelGrid grid(problem);
    const std::int64_t bytes = element_bytes(type);
    for (std::int64_t position = 0; position < 64; ++position)
      for (std::int64_t channel = 0; channel < kConsumerChannels; ++channel) {
        const std::int64_t read =
            host::swizzled(static_cast<std::uint32_t>((position * kConsumerChannels + channel) * bytes),
                           static_cast<std::uint32_t>(kLine));
        EXPECT_EQ(box_place(grid, position, channel) * bytes, read) << position << " " << channel;
      }
  }
}

// Floats are written as templates/wgmma/stage_box.cu.in does; eight lanes write 16 bytes each of 16-bit outputs.
TEST(WgmmaStoreBoxes, LanesHaveNoBankConflicts) {
  const Problem problem = problem_of(DataType::f32), problem_of_halves = problem_of(DataType::bf16);
  const PixelGrid floats(problem), halves(problem_of_halves);
  for (int warp = 0; warp < 4; ++warp)
    for (int part = 0; part < 4; ++part) {
      std::set<std::int64_t> banks;
      for (int lane = 0; lane < kLanes; ++lane)
        banks.insert(box_place(floats, lane % 4 * 2 + (part % 2 ^ lane / 2 % 2), warp * 16 + part / 2 * 8 + lane / 4) %
                     32);
      EXPECT_EQ(banks.size(), 32u) << warp << " " << part;
      std::set<std::int64_t> pieces;
      for (int lane = part * 8; lane < part * 8 + 8; ++lane)
        pieces.insert(box_place(halves, lane / 16 * 8 + lane % 8, warp * 16 + lane / 8 % 2 * 8) / 8 % 8);
      EXPECT_EQ(pieces.size(), 8u) << warp << " " << part;
    }
}

/// The first candidate of a spec that stores boxes, in rows or across them, of tiles with one or two runs.
WgmmaCandidate first_that_stores(const std::string& spec, int runs) {
  for (const WgmmaCandidate& one : test::wgmma_candidates(parse_spec(spec)))
    if (one.tiling.stores_boxes() && one.tiling.runs() == runs) return one;
  throw std::logic_error("no such candidate: " + spec);
}

TEST(WgmmaStoreBoxes, WarpgroupsWaitForTheCopyEngine) {
  for (const char* spec : {"input=2,24,26,60 weight=64,24,3,3 dtype=f16 input_layout=nhwc output_layout=nhwc",
                           "input=2,24,26,60 weight=64,24,1,1 math=tf32 bias input_layout=nhwc output_layout=nhwc"})
    for (const int runs : {1, 2}) {
      const WgmmaCandidate one = first_that_stores(spec, runs);
      const std::string text = generate(one.plan).text;
      const bool crosses = one.geometry().boxes_cross_rows();
      const std::size_t store = text.find("// Store: "),
                        wait = text.find("if (issues_stores) bulk_stores_wait_read<kStagedBoxes - 1>()", store),
                        meet = text.find("warpgroup_sync(1 + consumer)", wait), stage = text.find("box_place(", meet),
                        fence = text.find("fence_async_proxy()", stage),
                        staged = text.find("warpgroup_sync(1 + consumer)", fence),
                        copy = text.find("tensor_copy_to_global(&y_map", staged),
                        commit = text.find("bulk_stores_commit()", copy),
                        last = text.find("if (issues_stores) bulk_stores_wait_read<0>()", commit);
      EXPECT_TRUE(store < wait && wait < meet && meet < stage && stage < fence) << text;
      EXPECT_TRUE(fence < staged && staged < copy && copy < commit && commit < last) << text;
      EXPECT_NE(last, std::string::npos) << text;
      // Behind an image's last row is another image, into which no box may go.
      EXPECT_EQ(text.find("if (row < kP)") != std::string::npos, !crosses && runs == 2) << spec << " " << runs;
    }
}

TEST(WgmmaStoreBoxes, AreNotForAllOutputs) {
  const auto some = [](const std::string& spec) {
    for (const WgmmaCandidate& one : test::wgmma_candidates(parse_spec(spec)))
      if (one.tiling.stores_boxes()) return true;
    return false;
  };
  const std::string input = "input=2,64,40,120 ", nhwc = " math=tf32 input_layout=nhwc output_layout=nhwc";
  EXPECT_TRUE(some(input + "weight=96,64,3,3" + nhwc));
  EXPECT_TRUE(some(input + "weight=128,64,3,3 dtype=bf16 output_layout=nhwc"));
  EXPECT_FALSE(some(input + "weight=96,64,3,3 dtype=bf16 output_layout=nhwc"));  // no whole line of channels
  EXPECT_FALSE(some(input + "weight=100,64,3,3" + nhwc));
  EXPECT_FALSE(some(input + "weight=128,64,3,3 residual" + nhwc));
  EXPECT_FALSE(some(input + "weight=128,64,3,3 math=tf32 input_layout=nhwc"));  // NCHW
  EXPECT_TRUE(some(input + "weight=128,32,3,3 groups=2" + nhwc));
  EXPECT_FALSE(some(input + "weight=192,32,3,3 groups=2" + nhwc));  // 96 channels of a group
  EXPECT_FALSE(some("input=2,64,7,7 weight=128,64,3,3" + nhwc));    // runs of whole images
}

}  // namespace
}  // namespace jitconv::codegen
