// Statements about weight gradients of few output channels, whose operands are exchanged or whose groups are joined:
// which are, that the kernel's problem has the same sums, and the kernels of their plans.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>

#include "codegen/plan.h"
#include "support/plan_kernels.h"
#include "support/random_specs.h"
#include "unit/codegen/found.h"

namespace jitconv::codegen {
namespace {

Problem problem_of(const std::string& text) {
  return lower(canonical(parse_spec(text + " operation=weight_gradient")));
}

/// Whether an output and a tap of an axis meet this input.
bool meets(const Axis& axis, std::int64_t output, std::int64_t tap, std::int64_t input) {
  return output * axis.stride + tap * axis.dilation - axis.pad == input;
}

RC_GTEST_PROP(ExchangedOperandsProperty, PixelsMeetInTheOppositeTap, ()) {
  ConvSpec spec = *test::valid_specs();
  spec.operation = Operation::weight_gradient;
  spec.epilogue.activation = Activation::none;
  if (spec.input.n == 0) spec.input.n = 1;
  const Problem asked = lower(canonical(spec));
  RC_PRE(can_exchange_operands(asked));
  const Problem exchanged = exchanged_operands(asked);
  RC_ASSERT(exchanged.k == asked.c && exchanged.c == asked.k && exchanged.groups == asked.groups);
  RC_ASSERT(exchanged.input == asked.output && exchanged.output == asked.input);
  for (const auto axis : {&Problem::rows, &Problem::columns}) {
    const Axis &a = asked.*axis, &e = exchanged.*axis;
    RC_ASSERT(e.pad >= 0 && e.input == a.output && e.output == a.input);
    for (std::int64_t output = 0; output < a.output; ++output)
      for (std::int64_t input = 0; input < a.input; ++input)
        for (std::int64_t tap = 0; tap < a.taps; ++tap)
          RC_ASSERT(meets(a, output, tap, input) == meets(e, input, a.taps - 1 - tap, output));
  }
}

TEST(ExchangedOperands, NeedNoStrideAndNoMorePaddingThanTheFilterReaches) {
  EXPECT_TRUE(can_exchange_operands(problem_of("input=2,8,9,9 weight=8,8,3,3 padding=2 dilation=1")));
  EXPECT_TRUE(can_exchange_operands(problem_of("input=2,8,9,9 weight=8,8,3,1 padding=4,0 dilation=2")));
  EXPECT_FALSE(can_exchange_operands(problem_of("input=2,8,9,9 weight=8,8,3,3 padding=3")));
  EXPECT_FALSE(can_exchange_operands(problem_of("input=2,8,9,9 weight=8,8,3,3 stride=1,2")));
  // The stride of a 1x1 filter is one of x's view, which has gaps then.
  for (const char* stride : {"2", "1,2", "2,1"})
    EXPECT_FALSE(
        can_exchange_operands(problem_of(std::string("input=2,40,9,10 weight=8,40,1,1 layout=nhwc stride=") + stride)))
        << stride;
  EXPECT_TRUE(can_exchange_operands(problem_of("input=2,40,9,10 weight=8,40,1,1 layout=nhwc")));
  EXPECT_TRUE(can_exchange_operands(problem_of("input=2,40,9,10 weight=8,40,1,1 input_layout=nhwc")));
  EXPECT_FALSE(can_exchange_operands(lower(canonical(parse_spec("input=2,8,9,9 weight=8,8,3,3")))));
}

TEST(ExchangedOperands, ServeFewOutputChannels) {
  const auto plan_of = [](const std::string& text) {
    return make_plan(parse_spec(text + " operation=weight_gradient"), parse_target("sm_90a"));
  };
  for (const char* text :
       {"input=3,64,518,518 weight=1,64,7,7 math=tf32", "input=6,32,352,352 weight=4,32,3,3 math=tf32",
        "input=16,64,128,128 weight=3,64,7,7 padding=3 dtype=bf16 layout=nhwc",
        "input=4,256,296,304 weight=3,256,1,1 math=tf32 layout=nhwc"}) {
    const ConvPlan plan = plan_of(text), with_db = plan_of(std::string(text) + " bias");
    ASSERT_NE(plan.tiling<WgradWgmmaTiling>(), nullptr) << text;
    EXPECT_TRUE(plan.tiling<WgradWgmmaTiling>()->exchanges) << text;
    EXPECT_EQ(test::kernels_of(plan), "wgrad_wgmma reduce") << text;
    EXPECT_EQ(test::kernels_of(with_db), "bias_gradient wgrad_wgmma reduce") << text;
  }
  EXPECT_FALSE(plan_of("input=8,64,56,56 weight=64,64,3,3 math=tf32").tiling<WgradWgmmaTiling>()->exchanges);
}

// The sums of dw and those of db are parts of one region, which the kernels and the pass see alike.
TEST(ExchangedOperands, SumsOfDbLieBehindThoseOfDw) {
  const ConvPlan plan =
      make_plan(parse_spec("input=3,64,518,518 weight=1,64,7,7 math=tf32 bias operation=weight_gradient"),
                parse_target("sm_90a"));
  const auto& sums = std::get<BiasGradientTiling>(plan.kernels.at(0).tiling);
  const auto& tiling = std::get<WgradWgmmaTiling>(plan.kernels.at(1).tiling);
  const auto& reduction = std::get<ReduceTiling>(plan.kernels.at(2).tiling);
  EXPECT_EQ(reduction.sums.stride, 64 * 49 + 64) << "one of db, and what fills up";
  EXPECT_EQ(sums.stride, reduction.sums.stride);
  EXPECT_EQ(tiling.sum_stride(plan.kernels.at(1).problem), reduction.sums.stride);
  EXPECT_EQ(sums.shares, reduction.split_k);
  EXPECT_EQ(tiling.splits, reduction.split_k);
  EXPECT_EQ(sums.partial_sums, reduction.partial_sums);
  EXPECT_EQ(tiling.partial_sums, reduction.partial_sums);
  EXPECT_EQ(reduction.bias_sums, 1);
  EXPECT_EQ(reduction.sums.order, GradientSums::Order::tap_c_k);
  EXPECT_EQ(reduction.sums.bias_first, 64 * 49);
  EXPECT_EQ(reduction.group_k, 1);
  EXPECT_EQ(plan.kernels.at(0).launch.blocks, static_cast<std::uint32_t>(sums.shares));
}

TEST(ExchangedOperands, SayWhyTheyDoNotServe) {
  const auto why = [](const char* text) {
    std::string reason;
    candidates_of(Family::wgrad_wgmma, problem_of(text), parse_target("sm_90a"), reason);
    return reason;
  };
  const std::string rule =
      ", it takes 16, or as many input channels and neither a stride nor more padding than the filter reaches, or "
      "groups "
      "that can be joined";
  EXPECT_EQ(why("input=2,8,20,20 weight=3,8,3,3 math=tf32"), "groups of 3 output channels" + rule);
  EXPECT_EQ(why("input=2,64,20,20 weight=4,64,3,3 stride=2 math=tf32"), "groups of 4 output channels" + rule);
  EXPECT_EQ(why("input=2,64,20,20 weight=4,64,3,3 math=tf32"), "");
  // As many products as the sums have, not as many as the other tensor has pixels.
  for (const char* text : {"input=1,64,12,12 weight=4,64,9,9", "input=1,16,4,4 weight=4,16,9,9 padding=8",
                           "input=1,16,4,4 weight=16,16,9,9 padding=8"})
    EXPECT_EQ(why(text),
              "sums of 16 products, at least 96 are needed so that split operands are as accurate as fp32 FMA");
}

/// How many groups the plans of wgrad_wgmma join; 0 if they differ, or there are none.
int joined_by_plans(const std::string& text) {
  std::string why;
  int joined = -1;
  for (const Candidate& one : candidates_of(Family::wgrad_wgmma, problem_of(text), parse_target("sm_90a"), why)) {
    const int joins = std::get<WgradWgmmaTiling>(one.tiling).joins_groups;
    if (joined != -1 && joined != joins) return 0;
    joined = joins;
  }
  return std::max(joined, 0);
}

TEST(JoinedGroups, FillTheRowsOfAnInstruction) {
  EXPECT_EQ(joined_by_plans("input=8,128,56,56 weight=128,4,3,3 groups=32 math=tf32"), 16);
  EXPECT_EQ(joined_by_plans("input=8,256,56,56 weight=256,8,3,3 stride=2 groups=32 math=tf32"), 8);
  EXPECT_EQ(joined_by_plans("input=8,60,28,28 weight=60,5,3,3 groups=12 math=tf32"), 12);
  EXPECT_EQ(joined_by_plans("input=8,130,28,28 weight=130,10,3,3 groups=13 math=tf32"), 0)
      << "13 has no divisor up to 6";
  EXPECT_EQ(joined_by_plans("input=8,256,28,28 weight=256,16,3,3 groups=16 math=tf32"), 0) << "16 rows do without, too";
  EXPECT_EQ(joined_by_plans("input=8,256,28,28 weight=264,64,3,3 groups=4 math=tf32"), 1) << "66 rows are enough";
  EXPECT_EQ(joined_by_plans("input=8,64,28,28 weight=128,1,3,3 groups=64 math=tf32"), 0) << "depthwise";
  EXPECT_EQ(joined_by_plans("input=8,64,28,28 weight=512,1,3,3 groups=64 math=tf32"), 8);
  EXPECT_EQ(joined_by_plans("input=1,262144,16,16 weight=65536,4,7,7 padding=3 groups=65536 math=tf32"), 0)
      << "gigabytes of sums";
  EXPECT_EQ(joined_by_plans("input=8,512,28,28 weight=32,64,3,3 stride=2 groups=8 math=tf32"), 4) << "256 columns";
}

TEST(JoinedGroups, HaveTheChannelsAndThePixelsOfTheirParts) {
  const Problem asked = problem_of("input=8,128,56,56 weight=256,4,3,3 padding=1 groups=32 bias math=tf32");
  const Problem joined = join_groups(asked, 8);
  EXPECT_EQ(joined.groups, 4);
  EXPECT_EQ(joined.c, 32);
  EXPECT_EQ(joined.k, 64);
  EXPECT_EQ(joined.input, asked.input);
  EXPECT_EQ(joined.output, asked.output);
  EXPECT_EQ(joined.rows, asked.rows);
  EXPECT_EQ(joined.output_channels(), asked.output_channels());
  EXPECT_EQ(joined.weight_elements(), 8 * asked.weight_elements());
}

TEST(JoinedGroups, SumsOfDbLieBehindThoseOfAllProducts) {
  const ConvPlan plan = make_plan(
      parse_spec("input=8,128,56,56 weight=128,4,3,3 padding=1 groups=32 bias math=tf32 operation=weight_gradient"),
      parse_target("sm_90a"));
  ASSERT_EQ(test::kernels_of(plan), "wgrad_wgmma reduce");
  const auto& reduction = std::get<ReduceTiling>(plan.kernels.at(1).tiling);
  EXPECT_EQ(reduction.sums.joined_groups, 16);
  EXPECT_EQ(reduction.group_k, 4);
  EXPECT_EQ(reduction.sums.bias_first, 128 * 64 * 9);
  EXPECT_EQ(reduction.sums.stride, 128 * 64 * 9 + 128);
  EXPECT_EQ(reduction.bias_sums, 128);
}

}  // namespace
}  // namespace jitconv::codegen
