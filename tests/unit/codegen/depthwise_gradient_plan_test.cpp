// Statements about every candidate of the depthwise family for a data gradient with a stride: a thread has outputs of
// all phases, and its window of dy has what they meet.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "codegen/arithmetic.h"
#include "codegen/source.h"
#include "support/random_specs.h"
#include "unit/codegen/found.h"
#include "unit/codegen/tile_cover.h"

namespace jitconv::codegen {
namespace {

using Store = DepthwiseTiling::Store;

using test::any_target;
using Found = test::Found<DepthwiseTiling>;

std::vector<Found> gradient_candidates(const ConvSpec& spec, const Target& target) {
  return test::found_candidates<DepthwiseTiling>(spec, target);
}

ConvSpec any_strided_gradient(const test::SpecLimits& limits = {}) {
  ConvSpec spec = *test::valid_specs(limits);
  if (spec.input.n == 0) spec.input.n = 1;
  spec.groups = spec.weight.k;  // one channel of dy a group, and any number of dx
  spec.input.c = spec.groups * spec.weight.c;
  spec.input_layout = spec.output_layout = Layout::nchw;
  spec.operation = Operation::data_gradient;
  RC_PRE(spec.stride != Size2(1));
  return spec;
}

RC_GTEST_PROP(DepthwiseGradientPlanProperty, ThreadsHaveAllPhasesAndWhatTheyMeet, ()) {
  const Target target = any_target();
  for (const Found& one : gradient_candidates(any_strided_gradient(), target)) {
    const DepthwiseTiling& t = one.tiling;
    const Axis &rows = one.problem.rows, &columns = one.problem.columns;
    if (!one.problem.is_upsampled()) continue;  // a stride of which there is one output is none
    RC_ASSERT(one.plan.kernels.size() == (one.spec.dy_activation == Activation::none ? 1u : 2u));
    RC_ASSERT(rows.upsampling == one.spec.stride.h && columns.upsampling == one.spec.stride.w);
    RC_ASSERT(t.thread_p % rows.upsampling == 0 && t.thread_q % columns.upsampling == 0);
    RC_ASSERT(t.unroll_rows || rows.upsampling == 1);
    RC_ASSERT(!t.hide_places || (t.unroll_rows && one.problem.taps() > 64 && t.thread_p * t.thread_q <= 32));
    // From a thread to the next.
    const std::int64_t step = t.thread_q / columns.upsampling;
    RC_ASSERT(step % t.read_vector == 0 && t.input_pitch % t.read_vector == 0);
    RC_ASSERT(t.window(one.problem) % t.read_vector == 0 && t.input_pitch % t.copy_vector == 0);
    RC_ASSERT(t.window(one.problem) >= t.column_shift + columns.inputs_met(t.thread_q));
    RC_ASSERT((t.tile_q() - t.thread_q) / columns.upsampling + t.window(one.problem) <= t.input_pitch);
    // The last thread's rows, and none behind them.
    RC_ASSERT(t.input_rows(one.problem) == (t.tile_p() - t.thread_p) / rows.upsampling + rows.inputs_met(t.thread_p));
    // Copies lie in a row, wholly.
    RC_ASSERT(columns.input % t.copy_vector == 0);
    RC_ASSERT(t.column_shift >= 0 && t.column_shift < t.copy_vector);
    RC_ASSERT((columns.first_input() - t.column_shift) % t.copy_vector == 0);
    if (t.tile_q() < columns.output) RC_ASSERT(t.tile_q() / columns.upsampling % t.copy_vector == 0);
    if (t.store == Store::vector) {
      const std::int64_t bytes = t.thread_q * element_bytes(one.spec.dtype);
      RC_ASSERT(columns.output % t.thread_q == 0 && 16 % bytes == 0 && bytes <= one.spec.alignment);
    }
    const std::int64_t weights = t.planes * one.spec.weight.c * one.problem.taps();
    RC_ASSERT(one.plan.convolution().launch.shared_bytes >= 4 * (t.input_floats(one.problem) + weights));
  }
}

RC_GTEST_PROP(DepthwiseGradientPlanProperty, EachPixelIsComputedOnce, ()) {
  test::SpecLimits limits;
  limits.batch = 2, limits.channels_per_group = 6, limits.groups = 3, limits.outputs = 30;
  const ConvSpec spec = any_strided_gradient(limits);
  const TensorShape& dx = spec.input;
  RC_PRE(dx.n * dx.c * dx.h * dx.w <= test::kFewOutputs);
  const std::vector<Found> found = gradient_candidates(spec, any_target());
  if (found.empty()) return;
  const Found& one = found[*rc::gen::inRange<std::size_t>(0, found.size())];
  const DepthwiseTiling& t = one.tiling;
  // Restates templates/depthwise/kernel.cu.in: which pixels the threads of the blocks compute.
  test::TileCover cover(dx);
  const std::int64_t tiles_q = ceil_div(dx.w, t.tile_q()), tiles_p = ceil_div(dx.h, t.tile_p());
  const std::int64_t multiplier = spec.weight.c;  // planes of dx for one of dy
  for (std::int64_t block = 0; block < one.plan.convolution().launch.blocks; ++block) {
    for (int thread = 0; thread < t.threads(); ++thread) {
      const std::int64_t plane = block / tiles_q / tiles_p * t.planes + thread / (t.threads_q * t.threads_p);
      const std::int64_t p0 = block / tiles_q % tiles_p * t.tile_p() + thread / t.threads_q % t.threads_p * t.thread_p;
      const std::int64_t q0 = block % tiles_q * t.tile_q() + thread % t.threads_q * t.thread_q;
      for (int p = 0; p < t.thread_p; ++p)
        for (int q = 0; q < t.thread_q; ++q)
          for (std::int64_t first = plane * multiplier, i = first; i < first + multiplier; ++i)
            cover.add(i / dx.c, i % dx.c, p0 + p, q0 + q);
    }
  }
  RC_ASSERT(cover.each_once());
}

TEST(DepthwiseGradientPlan, ServesLargePlanesInOneKernel) {
  for (const char* arch : {"sm_75", "sm_80", "sm_90a", "sm_120a"}) {
    for (const char* text : {"input=32,96,112,112 weight=96,1,3,3 groups=96 padding=1 stride=2",
                             "input=32,144,56,56 weight=144,1,5,5 groups=144 padding=2 stride=2 dtype=bf16",
                             "input=32,192,56,57 weight=192,1,7,7 groups=192 padding=3 stride=2 dtype=f16",
                             "input=8,32,113,112 weight=32,1,3,3 groups=32 padding=1 stride=2,1",
                             "input=8,32,112,112 weight=32,1,3,3 groups=32 padding=2 stride=2 dilation=2"}) {
      const ConvPlan plan = make_plan(parse_spec(std::string("operation=data_gradient ") + text), parse_target(arch));
      EXPECT_EQ(plan.family(), Family::depthwise) << text;
      EXPECT_EQ(plan.kernels.size(), 1u) << text;
    }
  }
}

TEST(DepthwiseGradientPlan, RollsFilterRowsOnlyWithoutAStrideAlongThem) {
  const auto rolled = [](const char* text) {
    bool any = false;
    for (const Found& one : gradient_candidates(parse_spec(text), parse_target("sm_90a")))
      any = any || !one.tiling.unroll_rows;
    return any;
  };
  EXPECT_TRUE(rolled("input=1,4,60,64 weight=4,1,31,31 stride=1,2 padding=15 groups=4 operation=data_gradient"));
  EXPECT_FALSE(rolled("input=1,4,60,64 weight=4,1,31,31 stride=2,2 padding=15 groups=4 operation=data_gradient"));
}

TEST(DepthwiseGradientPlan, SaysWhatItCannotDo) {
  const auto why = [](const char* text) {
    std::string reason;
    candidates_of(Family::depthwise, lower(canonical(parse_spec(text))), parse_target("sm_90a"), reason);
    return reason;
  };
  EXPECT_EQ(why("input=2,8,90,90 weight=8,1,3,3 groups=8 stride=17 operation=data_gradient"),
            "no tile fits shared memory and registers");
  EXPECT_EQ(why("input=2,8,20,20 weight=16,1,3,3 groups=8 stride=2 operation=data_gradient"),
            "2 input channels per group, not 1");
  EXPECT_EQ(why("input=2,8,20,20 weight=8,1,3,3 groups=8 stride=2 layout=nhwc operation=data_gradient"),
            "works on nchw tensors");
  EXPECT_EQ(why("input=2,8,20,20 weight=8,1,3,3 groups=8 stride=2 operation=data_gradient"), "");
}

// A stride of 1 is as it was: taps are reversed by a pass.
TEST(DepthwiseGradientPlan, LeavesStrideOneToADenseConvolution) {
  for (const Found& one :
       gradient_candidates(parse_spec("input=8,64,57,57 weight=64,1,3,3 groups=64 padding=1 operation=data_gradient"),
                           parse_target("sm_90a"))) {
    EXPECT_EQ(one.plan.kernels.size(), 2u);
    EXPECT_GT(one.problem.weight.stride.h, 0);
    EXPECT_EQ(one.tiling.read_vector, 4);
  }
}

}  // namespace
}  // namespace jitconv::codegen
