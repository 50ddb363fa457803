// Statements about kernels of the wgmma family whose operands are split into two TF32 numbers (math=fp32): where they
// may serve, when their accumulators are promoted, what splitting costs in memory and registers, and what the text
// does.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "codegen/costs/costs.h"
#include "codegen/wgmma/memory.h"
#include "codegen/wgmma/price.h"
#include "codegen/wgmma/registers.h"
#include "codegen/wgmma/store.h"
#include "unit/codegen/refusals.h"
#include "unit/codegen/squeezed.h"
#include "unit/codegen/wgmma_candidates.h"

namespace jitconv::codegen {
namespace {

std::vector<int> promotion_groups_of(const WgmmaGeometry& geometry) {
  return geometry.promotion_groups(static_cast<int>(geometry.units() / 2));
}

using test::wgmma_candidates;
using test::WgmmaCandidate;

/// Some of those that `spec` has in fp32 mode.
std::vector<WgmmaCandidate> some_that_split(ConvSpec spec) {
  spec = *rc::gen::inRange(0, 2) == 0 ? test::for_im2col(spec, Layout::nhwc) : test::for_tensor_cores(spec);
  spec.dtype = DataType::f32;
  spec.math = MathMode::fp32;
  return test::some_of(wgmma_candidates(spec));
}

int interval_of(const std::string& text) {
  return wgmma_candidates(parse_spec(text)).front().tiling.promotion_interval;
}

TEST(WgmmaSplitOperands, ServeSumsOfEnoughProductsUnlessMathIsIeee) {
  EXPECT_NE(test::why_not(Family::wgmma, "input=2,7,20,30 weight=64,7,3,3").find("sums of 63 products"),
            std::string::npos);
  EXPECT_NE(test::why_not(Family::wgmma, "input=2,64,20,30 weight=64,64,3,3 math=ieee").find("math is ieee"),
            std::string::npos);
  for (const WgmmaCandidate& one : wgmma_candidates(parse_spec("input=2,64,20,30 weight=64,64,1,1")))
    EXPECT_TRUE(one.tiling.splits_operands());
  for (const WgmmaCandidate& one : wgmma_candidates(parse_spec("input=2,128,20,30 weight=64,128,1,1 math=tf32")))
    EXPECT_FALSE(one.tiling.splits_operands());
}

TEST(WgmmaSplitOperands, ArePromotedMoreOftenInShortSums) {
  EXPECT_EQ(interval_of("input=2,64,20,30 weight=64,64,1,1"), 1);
  EXPECT_EQ(interval_of("input=2,95,20,30 weight=64,95,1,1"), 1);
  EXPECT_EQ(interval_of("input=2,96,20,30 weight=64,96,1,1"), 2);
  EXPECT_EQ(interval_of("input=2,128,20,30 weight=64,128,1,1"), 3);
  EXPECT_EQ(interval_of("input=2,16,20,30 weight=64,16,3,3"), 3);
  EXPECT_EQ(interval_of("input=2,64,20,30 weight=64,64,3,3"), 4);
  EXPECT_EQ(interval_of("input=2,512,20,30 weight=64,512,3,3"), 8);
}

// Accumulators, as many sums, and 40 other registers, of 208.
TEST(WgmmaSplitOperands, HaveTilesAsWideAsRegistersAllow) {
  int widest = 0;
  for (const WgmmaCandidate& one : wgmma_candidates(parse_spec("input=8,64,512,1024 weight=128,64,3,3")))
    widest = std::max(widest, one.tiling.tile.columns);
  EXPECT_EQ(widest, 168);
}

TEST(WgmmaSplitOperands, AreDividedIntoEqualGroupsOfAStep) {
  for (const WgmmaCandidate& one : wgmma_candidates(parse_spec("input=2,64,20,30 weight=64,64,3,3"))) {
    WgmmaTiling tiling = one.tiling;
    tiling.pipeline.slices = 4;
    tiling.pipeline.filter_rows = 1;
    for (const auto& [interval, groups] :
         {std::pair{3, std::vector{3, 3}}, std::pair{4, std::vector{3, 3}}, std::pair{5, std::vector{3, 3}},
          std::pair{8, std::vector{6}}, std::pair{2, std::vector{2, 2, 2}}}) {
      tiling.promotion_interval = interval;
      EXPECT_EQ(promotion_groups_of(WgmmaGeometry(one.problem, tiling)), groups) << interval;
    }
    return;
  }
}

TEST(WgmmaSplitOperands, PayForProductsAndPromotions) {
  const WgmmaCandidate best = wgmma_candidates(parse_spec("input=8,64,512,1024 weight=128,64,3,3")).front();
  const WgmmaPrice price(best.problem, best.plan.target, costs_of(best.plan.target).wgmma);
  const auto cost = [&](int interval) {
    WgmmaTiling tiling = best.tiling;
    tiling.promotion_interval = interval;
    const WgmmaGeometry geometry(best.problem, tiling);
    return price.of(geometry, WgmmaStore(geometry), geometry.tiles());
  };
  EXPECT_GT(3 * cost(100), 4 * cost(0));
  EXPECT_GT(cost(1), cost(2));
}

// Pingpong warpgroups multiply nothing while sums are promoted.
TEST(WgmmaSplitOperands, AreNotOfTilesInTurnWhereSumsAreLong) {
  for (const char* text : {"input=8,64,512,1024 weight=128,64,3,3", "input=8,16,256,256 weight=128,16,3,3",
                           "input=16,128,56,56 weight=256,128,3,3 padding=1"})
    EXPECT_NE(wgmma_candidates(parse_spec(text)).front().tiling.schedule, WgmmaTiling::Schedule::pingpong) << text;
}

TEST(WgmmaSplitOperands, AreOfPackedWeights) {
  for (const char* text : {"input=2,64,40,30 weight=64,64,3,3", "input=2,128,40,30 weight=64,128,1,1"})
    for (const WgmmaCandidate& one : wgmma_candidates(parse_spec(text))) EXPECT_TRUE(one.tiling.packs_weights());
}

TEST(WgmmaSplitOperands, AreNamedAndExplained) {
  const ConvPlan plan =
      make_plan(parse_spec("input=8,64,512,1024 weight=128,64,3,3 bias activation=relu"), parse_target("sm_90a"));
  ASSERT_EQ(plan.family(), Family::wgmma);
  EXPECT_NE(to_string(plan).find("products: 3xTF32"), std::string::npos);
  EXPECT_TRUE(kernel_name(plan).starts_with("jitconv_wgmma_tf32x3_fprop_fp32_")) << kernel_name(plan);
}

RC_GTEST_PROP(WgmmaSplitOperandsProperty, GroupsArePromotedWithinTheInterval, ()) {
  for (const WgmmaCandidate& one : some_that_split(*test::valid_specs({}))) {
    const WgmmaGeometry g = one.geometry();
    const std::vector<int> groups = promotion_groups_of(g);
    RC_ASSERT(std::accumulate(groups.begin(), groups.end(), std::int64_t{0}) == g.units() / 2);
    const auto [least, most] = std::minmax_element(groups.begin(), groups.end());
    RC_ASSERT(*least > 0 && *most <= one.tiling.promotion_interval && *most - *least <= 1);
  }
}

RC_GTEST_PROP(WgmmaSplitOperandsProperty, BothPartsHaveRoom, ()) {
  for (const WgmmaCandidate& one : some_that_split(*test::valid_specs({}))) {
    const WgmmaGeometry g = one.geometry();
    const WgmmaMemory memory(g);
    WgmmaTiling whole = one.tiling;
    whole.promotion_interval = 0;
    const WgmmaGeometry unsplit(one.problem, whole);
    RC_ASSERT(g.weight_bytes() == 2 * unsplit.weight_bytes());
    RC_ASSERT(memory.weight_offset() == 2 * WgmmaMemory(unsplit).weight_offset());
    RC_ASSERT(g.packed_rows() == 2 * unsplit.packed_rows());
    RC_ASSERT(g.packed_rows() * 16 <= one.plan.packed_weight_bytes());
    RC_ASSERT(memory.shared_bytes() <= one.plan.target.shared_bytes_per_block);
    // Accumulators and sums of a thread, and registers of the block.
    RC_ASSERT(one.tiling.tile.columns + 40 <= WgmmaRegisters(g).consumer());
    RC_ASSERT(2 * WgmmaRegisters(g).consumer() + WgmmaRegisters(g).producer() <= 3 * WgmmaTiling::kLaunchRegisters);
  }
}

RC_GTEST_PROP(WgmmaSplitOperandsProperty, ThreeProductsOfEveryUnitAndOnePromotionOfEveryGroup, ()) {
  for (const WgmmaCandidate& one : some_that_split(*test::valid_specs({}))) {
    const WgmmaGeometry g = one.geometry();
    const std::string text = test::convolution_text(one).text;
    const auto units = static_cast<std::size_t>(g.units() / 2), groups = promotion_groups_of(g).size();
    RC_ASSERT(test::count(text, "  multiply(partial, ") == 3 * units);
    RC_ASSERT(test::count(text, "  multiply(partial, weights_low + ") == units);
    RC_ASSERT(test::count(text, ", 0);  //") == groups);  // accumulators begin with zero
    RC_ASSERT(test::count(text, "  promote(sum, partial);") == groups);
    RC_ASSERT(test::count(text, "  settle(partial);") == groups);
  }
}

}  // namespace
}  // namespace jitconv::codegen
