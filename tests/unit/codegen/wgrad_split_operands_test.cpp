// Statements about kernels of the wgrad_wgmma family whose operands are split into two TF32 numbers (math=fp32): where
// they may serve, when their accumulators are promoted, what splitting costs in memory and registers, and what the text
// does.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "codegen/plan.h"
#include "codegen/split_operands.h"
#include "codegen/text/emitter.h"
#include "codegen/text/kernel_name.h"
#include "codegen/wgrad_wgmma/family.h"
#include "support/random_specs.h"
#include "unit/codegen/refusals.h"
#include "unit/codegen/squeezed.h"

namespace jitconv::codegen {
namespace {

struct SplitCandidate {
  Problem problem;
  WgradWgmmaTiling tiling;
  ConvPlan plan;
  WgradGeometry geometry() const { return {problem, tiling}; }
  std::string text() const { return wgrad_wgmma::emit(plan.convolution(), kernel_name(plan)).text; }
  std::int64_t pixels() const { return problem.n * problem.output_plane(); }
};

/// Of the family's candidates, the cheapest first, every `step`-th.
std::vector<SplitCandidate> candidates_for(ConvSpec spec, std::size_t step = 1) {
  spec.operation = Operation::weight_gradient;
  spec = canonical(spec);
  const Target target = parse_target("sm_90a");
  std::string why;
  std::vector<Candidate> all = candidates_of(Family::wgrad_wgmma, lower(spec), target, why);
  std::ranges::stable_sort(all, {}, &Candidate::cost);
  std::vector<SplitCandidate> found;
  for (std::size_t i = 0; i < all.size(); i += step) {
    ConvPlan plan = plan_with(spec, target, all[i]);
    found.push_back({plan.convolution().problem, *plan.tiling<WgradWgmmaTiling>(), std::move(plan)});
  }
  return found;
}

std::vector<SplitCandidate> candidates_for(const std::string& text) { return candidates_for(parse_spec(text)); }

/// A few of those that a random spec has in fp32 mode.
std::vector<SplitCandidate> gradients_that_split(ConvSpec spec) {
  spec.dtype = DataType::f32;
  spec.math = MathMode::fp32;
  spec.epilogue.activation = Activation::none;
  // Enough output channels and pixels.
  spec.weight.k += 16 * spec.groups;
  spec.input.n += 2;
  spec.input.h += 8 * spec.stride.h + spec.weight.r * spec.dilation.h;
  spec.input.w += 8 * spec.stride.w + spec.weight.s * spec.dilation.w;
  spec.alignment = std::max<std::int64_t>(spec.alignment, 4);
  std::vector<SplitCandidate> some = candidates_for(spec, 20);
  RC_CLASSIFY(some.empty(), "no candidates");
  return some;
}

std::string why_not(const std::string& text) {
  return test::why_not(Family::wgrad_wgmma, text + " operation=weight_gradient");
}

TEST(WgradSplitOperands, ServeSumsOfEnoughPixelsUnlessMathIsIeee) {
  EXPECT_NE(why_not("input=1,64,5,19 weight=64,64,1,1").find("sums of 95 products"), std::string::npos);
  EXPECT_NE(why_not("input=2,64,20,30 weight=64,64,3,3 math=ieee").find("math=ieee"), std::string::npos);
  EXPECT_NE(why_not("input=2,8,20,30 weight=12,8,3,3").find("12 output channels"), std::string::npos);
  for (const SplitCandidate& one : candidates_for("input=1,64,8,12 weight=64,64,1,1"))
    EXPECT_TRUE(one.tiling.splits_operands);
  for (const char* math : {"math=tf32", "dtype=f16", "dtype=bf16 layout=nhwc"})
    for (const SplitCandidate& one : candidates_for(std::string("input=2,64,20,32 weight=64,64,3,3 ") + math))
      EXPECT_FALSE(one.tiling.splits_operands) << math;
}

TEST(WgradSplitOperands, LeaveShortSumsToFma) {
  const auto family = [](const char* text) {
    return make_plan(parse_spec(std::string(text) + " operation=weight_gradient"), parse_target("sm_90a")).family();
  };
  EXPECT_EQ(family("input=1,16,11,10 weight=16,16,3,3"), Family::wgrad);
  EXPECT_EQ(family("input=1,16,14,14 weight=16,16,3,3"), Family::wgrad_wgmma);
  EXPECT_EQ(family("input=8,64,512,1024 weight=128,64,3,3"), Family::wgrad_wgmma);
  EXPECT_EQ(family("input=32,3,224,224 weight=64,3,7,7 stride=2 padding=3"), Family::wgrad_wgmma);
}

TEST(WgradSplitOperands, ArePromotedMoreOftenInShortSums) {
  const auto longest = [](const std::string& text) {
    int most = 0;
    for (const SplitCandidate& one : candidates_for(text)) most = std::max(most, one.tiling.promotion_interval());
    return most;
  };
  EXPECT_EQ(longest("input=1,16,8,12 weight=32,16,1,1"), 2);
  EXPECT_EQ(longest("input=1,16,8,64 weight=32,16,1,1"), 3);
  EXPECT_EQ(longest("input=1,16,12,64 weight=32,16,1,1"), 4);
  EXPECT_EQ(longest("input=4,16,64,64 weight=32,16,1,1"), 8);
}

TEST(WgradSplitOperands, HaveTilesAsLargeAsRegistersAllow) {
  int most = 0;
  for (const SplitCandidate& one : candidates_for("input=8,64,512,1024 weight=128,64,3,3"))
    most = std::max(most, one.tiling.accumulators());
  EXPECT_EQ(most, 144);  // nine taps of 32 channels, beside 16 accumulators and 32 registers of dy
}

// Three products take three times as long, and more by what splitting and promoting cost.
TEST(WgradSplitOperands, PayForProductsAndPromotions) {
  const auto cost = [](const char* math) {
    return candidates_for(std::string("input=8,64,512,1024 weight=128,64,3,3 math=") + math).front().plan.cost;
  };
  EXPECT_GT(cost("fp32"), 2 * cost("tf32"));
  EXPECT_LT(cost("fp32"), 4 * cost("tf32"));
}

TEST(WgradSplitOperands, AreNamedAndExplained) {
  const ConvPlan plan = candidates_for("input=8,64,512,1024 weight=128,64,3,3 bias").front().plan;
  EXPECT_NE(to_string(plan).find("products: 3xTF32"), std::string::npos);
  EXPECT_TRUE(kernel_name(plan).find("wgrad_wgmma_tf32x3") != std::string::npos) << kernel_name(plan);
}

// What TMA brings is split, not rounded on the way.
TEST(WgradSplitOperands, AreNotRoundedBeforeTheyAreSplit) {
  for (const char* math : {"fp32", "tf32"}) {
    const SplitCandidate one =
        candidates_for(std::string("input=8,64,512,1024 weight=128,64,3,3 math=") + math).front();
    const std::vector<Argument> arguments = wgrad_wgmma::emit(one.plan.convolution(), "kernel").arguments;
    EXPECT_EQ(arguments.front().tensor, Tensor::x);
    EXPECT_EQ(arguments.front().map.rounds_to_tf32, std::string(math) == "tf32");
  }
}

RC_GTEST_PROP(WgradSplitOperandsProperty, StepsArePromotedWithinTheInterval, ()) {
  for (const SplitCandidate& one : gradients_that_split(*test::valid_specs({}))) {
    RC_ASSERT(one.tiling.splits_operands && one.pixels() >= 96);
    RC_ASSERT(one.tiling.promotion_interval() * one.geometry().depth() == one.tiling.row_pixels);
    RC_ASSERT(one.tiling.promotion_interval() <= longest_promotion_interval(one.pixels()));
  }
}

RC_GTEST_PROP(WgradSplitOperandsProperty, BothPartsHaveRoom, ()) {
  for (const SplitCandidate& one : gradients_that_split(*test::valid_specs({}))) {
    const WgradGeometry g = one.geometry();
    WgradWgmmaTiling whole = one.tiling;
    whole.splits_operands = false;
    RC_ASSERT(g.x_row_bytes() == 2 * WgradGeometry(one.problem, whole).x_row_bytes());
    RC_ASSERT(g.x_row_bytes() == 2 * g.x_part_bytes() && g.x_part_bytes() % 128 == 0);
    RC_ASSERT(g.shared_bytes() <= one.plan.target.shared_bytes_per_block);
    // Sums, accumulators and both parts of dy of a thread, and registers of the block.
    const WgradWgmmaTiling& t = one.tiling;
    RC_ASSERT(t.accumulators() + t.columns() / 2 + t.row_pixels + 40 <= t.consumer_registers());
    RC_ASSERT(32 * t.producer_warps() * t.producer_registers() + 256 * t.consumer_registers() <= 65536);
  }
}

RC_GTEST_PROP(WgradSplitOperandsProperty, ThreeProductsOfEveryTapAndOnePromotion, ()) {
  for (const SplitCandidate& one : gradients_that_split(*test::valid_specs({}))) {
    const std::string text = one.text();
    const std::size_t consumers = one.tiling.consumers_k == 2 ? 1 : 2;  // texts of them
    RC_ASSERT(test::count(text, "  add_products(sum[") == static_cast<std::size_t>(one.tiling.products()));
    RC_ASSERT(test::count(text, "multiply(partial, dy_low[block], x_high") == consumers);
    RC_ASSERT(test::count(text, "multiply(partial, dy_high[block], x_low") == consumers);
    RC_ASSERT(test::count(text, "multiply(partial, dy_high[block], x_high") == consumers);
    RC_ASSERT(test::count(text, "promote(sum_of_tap, partial);") == consumers);
    RC_ASSERT(test::count(text, "split_values<kBlocks * 4>(") == consumers);
  }
}

}  // namespace
}  // namespace jitconv::codegen
