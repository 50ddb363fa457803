// Statements about weights that a kernel packs before a convolution of the wgmma family, and how its blocks share
// that.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "unit/codegen/wgmma_candidates.h"

namespace jitconv::codegen {
namespace {

using test::some_wgmma_candidates;
using test::WgmmaCandidate;

/// What packs the weights of a plan, if a kernel does.
std::optional<PackWeightsTiling> packing_of(const ConvPlan& plan) {
  for (const KernelPlan& kernel : plan.kernels)
    if (const auto* tiling = std::get_if<PackWeightsTiling>(&kernel.tiling)) return *tiling;
  return {};
}

RC_GTEST_PROP(WgmmaPackingProperty, PackedWeightsHoldEveryTapOnce, ()) {
  for (const WgmmaCandidate& one : some_wgmma_candidates()) {
    const WgmmaTiling& t = one.tiling;
    const Problem& problem = one.problem;
    const WgmmaGeometry g = one.geometry();
    const std::int64_t steps_of_chunk = problem.rows.taps / t.pipeline.filter_rows, chunks = g.steps() / steps_of_chunk;
    RC_ASSERT(chunks * steps_of_chunk == g.steps());
    RC_ASSERT(chunks * g.chunk_channels() >= problem.c);
    RC_ASSERT((chunks - 1) * g.chunk_channels() < problem.c);
    RC_ASSERT(g.tiles_k() * (t.tile.channels / t.tile.folded_columns) >= problem.k);
    const auto packing = packing_of(one.plan);
    RC_ASSERT(packing.has_value() == t.packs_weights());
    if (!packing) {  // they are read as they lie in w
      RC_ASSERT(g.packed_rows() == 0 && one.plan.packed_weight_bytes() == 0);
      continue;
    }
    const std::int64_t bytes = packing->packed_bytes(problem);
    RC_ASSERT(one.plan.packed_weight_bytes() == bytes);
    RC_ASSERT(packing->steps(problem) == g.steps() && packing->tiles_k(problem) == g.tiles_k());
    RC_ASSERT(packing->units == g.units() && packing->has_empty_unit(problem) == g.has_zeros());
    RC_ASSERT(packing->row_pitch == g.pitch() && packing->fold(problem) == g.fold());
    RC_ASSERT(g.packed_rows() * test::kRowBytes == problem.groups * g.tiles_k() * g.steps() * g.weight_bytes());
    RC_ASSERT(g.packed_rows() <= INT32_MAX);
    RC_ASSERT(bytes >= g.packed_rows() * test::kRowBytes);
    RC_ASSERT(bytes % 256 == 0);
  }
}

RC_GTEST_PROP(WgmmaPackingProperty, PackingFitsAndHasNoIdleBlocks, ()) {
  for (const WgmmaCandidate& one : some_wgmma_candidates()) {
    const WgmmaTiling& t = one.tiling;
    const Problem& problem = one.problem;
    const WgmmaGeometry g = one.geometry();
    if (!t.packs_weights()) continue;
    const PackWeightsTiling packing = packing_of(one.plan).value();
    const int channels = packing.block_channels, slices = packing.block_slices;
    const int tile_channels = t.tile.channels / t.tile.folded_columns;
    RC_ASSERT(channels >= 1 && channels <= kWarpSize && tile_channels % channels == 0);
    RC_ASSERT(kWarpSize % channels == 0);
    RC_ASSERT(slices >= 1);
    RC_ASSERT(packing.shared_bytes(problem) <= PackWeightsTiling::kMostBytes);
    // Lanes that read the same place of neighbours' pieces have no bank conflicts.
    RC_ASSERT(packing.piece_pitch(problem) % 2 == 1);
    RC_ASSERT(packing.piece_pitch(problem) >= packing.piece_words(problem));
    RC_ASSERT(packing.piece_words(problem) * 4 == slices * problem.taps() * test::kRowBytes);
    // Each block has a slice, and together they have all.
    const std::int64_t blocks_of_k =
        packing.blocks(problem) * channels / (problem.groups * g.tiles_k() * tile_channels);
    RC_ASSERT(blocks_of_k * slices >= packing.packed_slices(problem));
    RC_ASSERT((blocks_of_k - 1) * slices < packing.packed_slices(problem));
    RC_ASSERT(packing.packed_slices(problem) * g.slice_channels() >= problem.c);
  }
}

/// Packing of candidates of data gradients, and what the pass reads.
struct GradientPacking {
  Problem problem;
  PackWeightsTiling tiling;
  std::int64_t blocks = 0;
};
std::vector<GradientPacking> gradient_packings(const char* text) {
  std::vector<GradientPacking> all;
  for (const WgmmaCandidate& one : test::wgmma_candidates(parse_spec(text)))
    for (const KernelPlan& kernel : one.plan.kernels)
      if (const auto* tiling = std::get_if<PackWeightsTiling>(&kernel.tiling))
        all.push_back({kernel.problem, *tiling, kernel.launch.blocks});
  return all;
}

// Blocks of a data gradient share the channels of dx. Of each they write the rows of every phase. What is left of a
// tile behind the last phase counts as rows of more phases.
TEST(WgmmaPacking, BlocksOfADataGradientHaveEachChannelOfDxOnce) {
  for (const char* text : {"input=2,72,30,30 weight=48,72,3,3 stride=2 padding=1 operation=data_gradient math=tf32",
                           "input=2,72,30,30 weight=48,72,3,3 stride=2 padding=1 operation=data_gradient math=tf32 "
                           "input_layout=nhwc output_layout=nhwc",
                           "input=2,80,30,30 weight=96,40,4,4 stride=2 padding=1 groups=2 operation=data_gradient "
                           "dtype=bf16 input_layout=nhwc output_layout=nhwc",
                           "input=2,40,30,30 weight=48,40,5,3 operation=data_gradient dtype=f16",
                           "input=2,3,64,64 weight=96,3,16,16 stride=16 operation=data_gradient math=tf32",
                           "input=2,36,60,60 weight=96,36,3,3 stride=3 padding=1 operation=data_gradient dtype=bf16",
                           "input=2,40,90,90 weight=24,40,31,31 operation=data_gradient dtype=f16"}) {
    SCOPED_TRACE(text);
    const std::vector<GradientPacking> all = gradient_packings(text);
    ASSERT_FALSE(all.empty());
    for (const auto& [problem, tiling, blocks] : all) {
      const std::int64_t phases = problem.is_sub_pixel() ? problem.phases.count() : 1, channels = problem.k / phases;
      const std::int64_t inner = problem.phases.columns_innermost ? problem.phases.columns.count() : 1;
      ASSERT_TRUE(PackWeightsTiling::reads_gradient(problem));
      EXPECT_EQ(tiling.block_rows(problem), tiling.block_channels * inner);
      const std::int64_t of_group = tiling.blocks_of_group(problem),
                         rows = tiling.tiles_k(problem) * tiling.tile_channels;
      if (!problem.is_sub_pixel()) {
        EXPECT_EQ(of_group * tiling.block_rows(problem), rows);
        EXPECT_EQ(PackWeightsTiling::kThreads % tiling.block_rows(problem), 0);
      } else {
        EXPECT_GE(of_group * tiling.block_channels, channels);
        EXPECT_LT((of_group - 1) * tiling.block_channels, channels);
        EXPECT_GE(tiling.packed_phases(problem) * channels * inner, rows);
        EXPECT_LT((tiling.packed_phases(problem) - 1) * channels * inner, rows);
        EXPECT_EQ(PackWeightsTiling::kThreads % tiling.lanes(problem), 0);
      }
      EXPECT_EQ(blocks, problem.groups * of_group *
                            ((tiling.packed_slices(problem) + tiling.block_slices - 1) / tiling.block_slices));
    }
  }
}

// Of many phases of few channels a block has all channels, so that neighbouring threads write neighbouring rows.
TEST(WgmmaPacking, ABlockHasAllChannelsOfSmallPhases) {
  for (const auto& [problem, tiling, blocks] :
       gradient_packings("input=2,3,64,64 weight=96,3,16,16 stride=16 operation=data_gradient math=tf32")) {
    ASSERT_EQ(problem.phases.count(), 256);
    EXPECT_EQ(tiling.block_channels, 3);
    EXPECT_EQ(tiling.blocks_of_group(problem), 1);
    EXPECT_EQ(tiling.lanes(problem), PackWeightsTiling::kThreads);
  }
  for (const auto& [problem, tiling, blocks] :
       gradient_packings("input=2,5,64,64 weight=96,5,2,2 stride=2 operation=data_gradient math=tf32")) {
    EXPECT_TRUE(tiling.has_whole_phases(problem));
    EXPECT_EQ(tiling.block_channels, 5);
    EXPECT_EQ(tiling.lanes(problem), tiling.tiles_k(problem) * tiling.tile_channels);
  }
}

// A load brings 16 bytes where rows of w, groups and what a block reads of a row are multiples of that.
TEST(WgmmaPacking, LoadsOfADataGradientAreWholeVectorsWhereTheyCanBe) {
  const auto elements = [](const std::string& spec) {
    int all = 0;
    for (const auto& [problem, tiling, blocks] :
         gradient_packings((spec + " operation=data_gradient stride=2 padding=1").c_str())) {
      if (PackWeightsTiling::joins_groups(problem)) continue;
      const std::int64_t pitch = tiling.piece_pitch(problem) * 4, most = PackWeightsTiling::kMostBytes;
      EXPECT_EQ(pitch % PackWeightsTiling::kRowBytes, 0);
      EXPECT_LE(tiling.pieces(problem) * pitch, most);
      all |= tiling.load_elements(problem);
    }
    return all;
  };
  EXPECT_EQ(elements("input=2,64,30,30 weight=48,64,3,3 dtype=bf16"), 8);
  EXPECT_EQ(elements("input=2,64,30,30 weight=48,64,3,3 math=tf32"), 4);
  EXPECT_EQ(elements("input=2,68,30,30 weight=48,68,3,3 dtype=bf16"), 4);
  EXPECT_EQ(elements("input=2,40,30,30 weight=64,20,3,3 groups=2 math=tf32"), 4);
  EXPECT_EQ(elements("input=2,36,30,30 weight=64,18,3,3 groups=2 math=tf32"), 2);
}

// Large filters take few output channels at a time, small ones leave many blocks.
TEST(WgmmaPacking, PackingFollowsTheFilter) {
  using Block = std::pair<int, int>;  // output channels and slices
  const auto block_of = [](const char* text) {
    for (const WgmmaCandidate& one : test::wgmma_candidates(parse_spec(text)))
      if (const auto packing = packing_of(one.plan)) return Block{packing->block_channels, packing->block_slices};
    return Block{};
  };
  EXPECT_EQ(block_of("input=16,64,56,56 weight=64,64,3,3 math=tf32"), (Block{32, 1}));
  EXPECT_EQ(block_of("input=16,512,14,14 weight=512,512,3,3 math=tf32"), (Block{32, 1}));
  EXPECT_EQ(block_of("input=16,1024,14,14 weight=2048,1024,1,1 math=tf32"), (Block{32, 8}));
  EXPECT_EQ(block_of("input=16,64,56,56 weight=64,64,1,1 math=tf32"), (Block{32, 4}));
  EXPECT_EQ(block_of("input=1,20,99,99 weight=20,20,31,31 dtype=f16"), (Block{2, 1}));
}

TEST(WgmmaPacking, AFilterThatNoBlockCanPackIsLeftToOtherFamilies) {
  EXPECT_TRUE(test::wgmma_candidates(parse_spec("input=1,16,1,9000 weight=64,16,1,4000 dtype=f16")).empty());
}

}  // namespace
}  // namespace jitconv::codegen
