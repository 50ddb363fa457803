// Statements about every plan, whatever its family: within the hardware's limits on every target, the same every time,
// the cheapest of the candidates; and the proof that 32-bit offsets suffice.
#include "codegen/plan.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "codegen/arithmetic.h"
#include "codegen/plan.h"
#include "jitconv/error.h"
#include "support/random_specs.h"

namespace jitconv::codegen {
namespace {

constexpr const char* kArchs[] = {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a"};

ConvSpec with_outputs(ConvSpec spec) {
  if (spec.input.n == 0) spec.input.n = 1;
  return spec;
}

/// What the driver refuses to launch, and what __launch_bounds__ may ask for.
void assert_within_limits(const ConvPlan& plan) {
  const Target& target = plan.target;
  RC_ASSERT(plan.convolution().launch.blocks >= 1u);
  RC_ASSERT(plan.convolution().launch.blocks <= static_cast<std::uint32_t>(INT32_MAX));
  RC_ASSERT(plan.convolution().launch.threads >= 1u);
  RC_ASSERT(plan.convolution().launch.threads <= 1024u);
  RC_ASSERT(plan.convolution().launch.shared_bytes <= target.shared_bytes_per_block);
  const std::int64_t resident = plan.convolution().launch.min_blocks_per_sm;
  RC_ASSERT(resident >= 1);
  RC_ASSERT(resident <= target.blocks_per_sm);
  RC_ASSERT(resident * plan.convolution().launch.threads <= target.threads_per_sm);
  // One KiB of every block's shared memory is the system's, from sm_80 on.
  const std::int64_t system_bytes = target.compute_capability() >= 80 ? 1024 : 0;
  RC_ASSERT(resident * (plan.convolution().launch.shared_bytes + system_bytes) <= target.shared_bytes_per_sm);
  // What is left of the registers for a thread: too few and ptxas can only spill.
  const std::int64_t warps = resident * ceil_div(plan.convolution().launch.threads, kWarpSize);
  RC_ASSERT(target.registers_per_sm / (warps * kWarpSize) >= 32);
  for (const std::int64_t bytes :
       {plan.packed_weight_bytes(), plan.workspace.partial_sums, plan.workspace.packed_pixels})
    RC_ASSERT(bytes >= 0 && bytes % 256 == 0);
  RC_ASSERT(plan.cost > 0);
}

RC_GTEST_PROP(PlanProperty, EveryPlanIsWithinTheLimitsOfItsTarget, ()) {
  const ConvSpec spec = with_outputs(*test::valid_specs());
  const Target target =
      parse_target(*rc::gen::elementOf(std::vector<std::string>(std::begin(kArchs), std::end(kArchs))));
  const std::vector<ConvPlan> plans = enumerate_plans(spec, target, SIZE_MAX);
  RC_ASSERT(!plans.empty());
  for (const ConvPlan& plan : plans) assert_within_limits(plan);
  RC_CLASSIFY(plans.front().family() == Family::wgmma, "tensor");
  RC_CLASSIFY(plans.front().family() == Family::direct, "direct");
  RC_CLASSIFY(plans.front().family() == Family::depthwise, "depthwise");
  RC_CLASSIFY(plans.front().family() == Family::fallback, "fallback");
}

RC_GTEST_PROP(PlanProperty, TheChosenPlanIsTheFirstCandidateAndTheSameEveryTime, ()) {
  const ConvSpec spec = with_outputs(*test::valid_specs());
  const Target target = parse_target("sm_90a");
  const ConvPlan plan = make_plan(spec, target);
  RC_ASSERT(plan == make_plan(spec, target));
  std::vector<ConvPlan> candidates = enumerate_plans(spec, target, 40);
  RC_ASSERT(candidates.size() <= 40u);
  candidates.front().notes = plan.notes;
  RC_ASSERT(candidates.front() == plan);
  for (std::size_t i = 1; i < candidates.size(); ++i) RC_ASSERT(candidates[i - 1].cost <= candidates[i].cost);
  RC_ASSERT(enumerate_plans(spec, target, 1).size() == 1u);
}

RC_GTEST_PROP(PlanProperty, ThePlanIsOfTheCanonicalSpec, ()) {
  const ConvSpec spec = *test::valid_specs();
  const ConvPlan plan = make_plan(spec, parse_target("sm_80"));
  RC_ASSERT(plan.spec == canonical(spec));
  RC_ASSERT((plan.family() == Family::none) == (spec.input.n == 0));
  ConvPlan again = make_plan(plan.spec, plan.target);
  RC_ASSERT(again == plan);
}

RC_GTEST_PROP(PlanProperty, NotesNameTheFamiliesThatWereNotChosen, ()) {
  const ConvSpec spec = with_outputs(*test::valid_specs());
  const ConvPlan plan = make_plan(spec, parse_target("sm_90a"));
  for (const Family family : {Family::pointwise, Family::wgmma, Family::direct, Family::depthwise}) {
    if (family == plan.family()) continue;
    const bool noted = std::any_of(plan.notes.begin(), plan.notes.end(), [&](const Note& note) {
      return note.topic == to_string(family) && !note.text.empty();
    });
    RC_ASSERT(noted);
  }
}

TEST(Plan, AnEmptyOutputHasNothingToLaunch) {
  const ConvPlan plan = make_plan(parse_spec("input=0,4,9,9 weight=4,4,3,3"), parse_target("sm_90a"));
  EXPECT_EQ(plan.family(), Family::none);
  EXPECT_EQ(plan.convolution().launch.blocks, 0u);
}

TEST(Plan, AnInvalidSpecIsRefused) {
  EXPECT_THROW(make_plan(parse_spec("input=1,4,9,9 weight=4,3,3,3"), parse_target("sm_90a")), SpecError);
  EXPECT_THROW(enumerate_plans(parse_spec("input=1,4,2,2 weight=4,4,3,3"), parse_target("sm_90a"), 1), SpecError);
}

TEST(Plan, WhatNoTileFitsIsLeftToTheFallback) {
  const ConvPlan plan =
      make_plan(parse_spec("input=1,8,8000,8100 weight=8,8,3,3 dilation=3000,3100"), parse_target("sm_90a"));
  EXPECT_EQ(plan.family(), Family::fallback);
  bool explained = false;
  for (const Note& note : plan.notes) explained |= note.text.find("dilation (3000,3100)") != std::string::npos;
  EXPECT_TRUE(explained) << "no note says why";
}

TEST(Plan, WorkCountsEveryTensorOnce) {
  const Work all = work(parse_spec("input=2,6,10,12 weight=9,2,3,3 groups=3 padding=1 bias residual dtype=f16"));
  EXPECT_EQ(all.flop, 2.0 * 2 * 9 * 10 * 12 * 2 * 9);
  EXPECT_EQ(all.bytes, 2.0 * (2 * 6 * 120 + 9 * 2 * 9 + 9 + 2 * 9 * 120 + 2 * 9 * 120));
}

// 32-bit offsets.

constexpr std::int64_t kLargest = INT32_MAX;

ConvSpec spec_of(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w, std::int64_t k) {
  ConvSpec spec;
  spec.input = {n, c, h, w};
  spec.weight = {k, c, 1, 1};
  return spec;
}

TEST(WideIndex, AnInputOffsetOfTwoToThe31NeedsIt) {
  const ConvSpec spec = spec_of(1, 2, 1, (kLargest - 1) / 2, 1);  // 2^31 - 2 elements, the output half of that
  EXPECT_FALSE(needs_wide_index(spec, {0, 0}));
  EXPECT_FALSE(needs_wide_index(spec, {1, 0}));
  EXPECT_TRUE(needs_wide_index(spec, {2, 0}));
}

TEST(WideIndex, AnOutputOffsetOfTwoToThe31NeedsIt) {
  EXPECT_TRUE(needs_wide_index(spec_of(16, 4, 1024, 1024, 128), {0, 0})) << "exactly 2^31";
  EXPECT_TRUE(needs_wide_index(spec_of(1, 1, 1, kLargest, 1), {0, 0})) << "2^31 - 1 and a tile's overhang";
  EXPECT_FALSE(needs_wide_index(spec_of(15, 4, 1024, 1024, 128), {0, 0}));
}

TEST(WideIndex, AFilterOffsetOfTwoToThe31NeedsIt) {
  const ConvSpec spec = spec_of(1, 32768, 1, 1, 65535);  // 2^31 - 2^15 elements
  EXPECT_FALSE(needs_wide_index(spec, {0, 0}));
  EXPECT_FALSE(needs_wide_index(spec, {0, 32767}));
  EXPECT_TRUE(needs_wide_index(spec, {0, 32768}));
}

RC_GTEST_PROP(WideIndexProperty, NarrowPlansHaveNarrowTensors, ()) {
  // Around the edge, where a mistake in the proof would show.
  const std::int64_t c = *rc::gen::elementOf(std::vector<std::int64_t>{1, 3, 16, 64});
  const std::int64_t k = *rc::gen::elementOf(std::vector<std::int64_t>{1, 5, 64, 128});
  const std::int64_t h = *rc::gen::inRange<std::int64_t>(500, 1100), w = *rc::gen::inRange<std::int64_t>(500, 1100);
  const std::int64_t edge = (std::int64_t{1} << 31) / (std::max(c, k) * h * w);
  ConvSpec spec = spec_of(std::max<std::int64_t>(1, edge + *rc::gen::inRange<std::int64_t>(-2, 3)), c, h, w, k);
  spec.weight.r = spec.weight.s = *rc::gen::elementOf(std::vector<std::int64_t>{1, 3});
  spec.padding = Padding(*rc::gen::inRange<std::int64_t>(0, 3));
  spec.input_layout = *rc::gen::element(Layout::nchw, Layout::nhwc);
  spec.output_layout = *rc::gen::element(Layout::nchw, Layout::nhwc);
  const ConvPlan plan = make_plan(spec, parse_target("sm_90a"));
  const TensorShape out = output_shape(spec);
  const std::int64_t inputs = spec.input.n * c * h * w, outputs = out.n * out.c * out.h * out.w;
  if (!plan.convolution().wide_index) {
    RC_ASSERT(inputs <= kLargest);
    RC_ASSERT(outputs <= kLargest);
  }
  // And no wider than a few images' worth of care.
  if (std::max(inputs, outputs) < kLargest / 10 * 9) RC_ASSERT(!plan.convolution().wide_index);
  RC_CLASSIFY(plan.convolution().wide_index, "wide");
}

}  // namespace
}  // namespace jitconv::codegen
