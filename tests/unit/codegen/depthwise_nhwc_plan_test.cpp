// Statements about every candidate of the depthwise_nhwc family, as in depthwise_plan_test.cpp.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "codegen/arithmetic.h"
#include "support/random_specs.h"
#include "unit/codegen/found.h"
#include "unit/codegen/tile_cover.h"

namespace jitconv::codegen {
namespace {

using Copy = DepthwiseNhwcTiling::Copy;

using test::any_target;
using NhwcFound = test::Found<DepthwiseNhwcTiling>;

std::vector<NhwcFound> nhwc_candidates(const ConvSpec& spec, const Target& target) {
  return test::found_candidates<DepthwiseNhwcTiling>(spec, target);
}

ConvSpec any_nhwc_spec(const test::SpecLimits& limits = {}) {
  ConvSpec spec = test::any_depthwise_spec(Layout::nhwc, limits);
  if (spec.weight.k == spec.input.c && *rc::gen::inRange(0, 3) == 0) spec.operation = Operation::data_gradient;
  return spec;
}

RC_GTEST_PROP(DepthwiseNhwcPlanProperty, NumbersAgree, ()) {
  const Target target = any_target();
  for (const NhwcFound& one : nhwc_candidates(any_nhwc_spec(), target)) {
    const DepthwiseNhwcTiling& t = one.tiling;
    const ConvSpec& spec = one.spec;
    const Launch& launch = one.plan.convolution().launch;
    RC_ASSERT(launch.threads == static_cast<std::uint32_t>(t.threads_c * t.threads_p * t.threads_q));
    RC_ASSERT(launch.threads <= 1024u);
    RC_ASSERT(launch.blocks == t.blocks(one.problem));
    RC_ASSERT(t.block_k() % (spec.weight.k / spec.groups) == 0);
    // Every tap of the last output lies in the tile, and the last patch's window.
    const DepthwiseAxis rows(one.problem.rows), columns(one.problem.columns);
    RC_ASSERT(t.input_rows(one.problem) == rows.met(t.tile_p() - 1, rows.taps - 1) + 1);
    RC_ASSERT(columns.met(t.tile_q() - t.thread_q, 0) + t.window(one.problem) <= t.input_columns(one.problem));
    // Patches meet taps alike.
    RC_ASSERT(t.thread_p * rows.stride % rows.upsampling == 0 && t.thread_q * columns.stride % columns.upsampling == 0);
    const std::int64_t pixels = t.input_pixels(one.problem) * t.pixel_pitch * element_bytes(spec.dtype);
    RC_ASSERT(t.weights_first_byte(one.problem) >= pixels);
    RC_ASSERT(launch.shared_bytes >= t.weights_first_byte(one.problem) + 4 * one.problem.taps() * t.weight_pitch());
    RC_ASSERT(launch.shared_bytes == t.shared_bytes(one.problem));
    RC_ASSERT(launch.shared_bytes <= target.shared_bytes_per_block);
  }
}

RC_GTEST_PROP(DepthwiseNhwcPlanProperty, VectorsAreOfOnePixelAndAligned, ()) {
  const Target target = any_target();
  for (const NhwcFound& one : nhwc_candidates(any_nhwc_spec(), target)) {
    const DepthwiseNhwcTiling& t = one.tiling;
    const ConvSpec& spec = one.spec;
    const std::int64_t element = element_bytes(spec.dtype);
    // Copies.
    RC_ASSERT(t.copy_vector * element <= std::min<std::int64_t>(16, spec.alignment));
    RC_ASSERT(spec.input.c % t.copy_vector == 0);
    RC_ASSERT(t.block_c(one.problem) % t.copy_vector == 0 && t.pixel_pitch % t.copy_vector == 0);
    RC_ASSERT(t.pixel_pitch >= t.block_c(one.problem));
    if (t.copy == Copy::async) RC_ASSERT(t.copy_vector * element >= 4 && target.compute_capability() >= 80);
    if (t.copy == Copy::box) {
      RC_ASSERT(t.copy_vector * element == 16 && target.compute_capability() == 90);
      RC_ASSERT(t.pixel_pitch == t.block_c(one.problem));
      RC_ASSERT(spec.dilation == Size2(1));
    }
    // Reads and stores.
    RC_ASSERT(t.vector * element <= std::min<std::int64_t>(16, spec.alignment));
    RC_ASSERT(spec.weight.k % t.vector == 0);
    RC_ASSERT(t.vector == 1 || spec.weight.k == spec.groups);
    RC_ASSERT(t.pixel_pitch % t.vector == 0 && t.weight_pitch() % t.vector == 0);
    if (t.store_pairs) RC_ASSERT(t.vector % 2 == 0 && spec.dtype != DataType::f32 && target.compute_capability() >= 80);
  }
}

/// Restates templates/depthwise_nhwc/: which outputs the threads of the blocks compute.
bool nhwc_covers_each_output_once(const NhwcFound& one) {
  const DepthwiseNhwcTiling& t = one.tiling;
  const Problem& problem = one.problem;
  test::TileCover cover(one.spec);
  const std::int64_t row_step = problem.rows.dilation_residues(), column_step = problem.columns.dilation_residues();
  for (std::int64_t index = 0; index < one.plan.convolution().launch.blocks; ++index) {
    std::int64_t block = index;
    const std::int64_t k_block = block % t.tiles_c(problem) * t.block_k();
    block /= t.tiles_c(problem);
    const std::int64_t q_tile = block % t.tiles_q(problem);
    block /= t.tiles_q(problem);
    const std::int64_t q_block = q_tile * t.tile_q() * column_step + block % column_step;
    block /= column_step;
    const std::int64_t p_tile = block % t.tiles_p(problem);
    block /= t.tiles_p(problem);
    const std::int64_t p_block = p_tile * t.tile_p() * row_step + block % row_step, n = block / row_step;
    for (int thread = 0; thread < t.threads(); ++thread) {
      const std::int64_t k = k_block + thread % t.threads_c * t.vector;
      const std::int64_t q_thread = thread / t.threads_c % t.threads_q * t.thread_q;
      const std::int64_t p_thread = thread / (t.threads_c * t.threads_q) * t.thread_p;
      for (int c = 0; c < t.vector; ++c)
        for (int p = 0; p < t.thread_p; ++p)
          for (int q = 0; q < t.thread_q; ++q)
            cover.add(n, k + c, p_block + (p_thread + p) * row_step, q_block + (q_thread + q) * column_step);
    }
  }
  return cover.each_once();
}

RC_GTEST_PROP(DepthwiseNhwcPlanProperty, EachOutputIsComputedOnce, ()) {
  test::SpecLimits limits;
  limits.batch = 2, limits.channels_per_group = 6, limits.groups = 3, limits.outputs = 60;
  ConvSpec spec = any_nhwc_spec(limits);
  spec.operation = Operation::forward;  // whose outputs TileCover counts
  const TensorShape out = output_shape(spec);
  RC_PRE(out.n * out.c * out.h * out.w <= test::kFewOutputs);
  const std::vector<NhwcFound> found = nhwc_candidates(spec, any_target());
  if (found.empty()) return;
  RC_ASSERT(nhwc_covers_each_output_once(found.front()));
  RC_ASSERT(nhwc_covers_each_output_once(found[*rc::gen::inRange<std::size_t>(0, found.size())]));
}

TEST(DepthwiseNhwcPlan, TakesVectorsOfAsManyChannelsAsThereMayBe) {
  const auto vectors = [](const char* text) {
    std::set<int> found;
    for (const NhwcFound& one : nhwc_candidates(parse_spec(text), parse_target("sm_90a")))
      found.insert(one.tiling.vector);
    return found;
  };
  using Vectors = std::set<int>;
  EXPECT_EQ(vectors("input=2,64,14,14 weight=64,1,3,3 groups=64 layout=nhwc"), (Vectors{1, 2, 4}));
  EXPECT_EQ(vectors("input=2,64,14,14 weight=64,1,3,3 groups=64 layout=nhwc dtype=bf16"), (Vectors{1, 2, 4, 8}));
  EXPECT_EQ(vectors("input=2,58,14,14 weight=58,1,3,3 groups=58 layout=nhwc dtype=bf16"), (Vectors{1, 2}));
  EXPECT_EQ(vectors("input=2,64,14,14 weight=64,1,3,3 groups=64 layout=nhwc alignment=8"), (Vectors{1, 2}));
  EXPECT_EQ(vectors("input=2,64,14,14 weight=128,1,3,3 groups=64 layout=nhwc"), (Vectors{1}));
}

// Restates Problem: output o meets tap t in input (o * stride + t * dilation - pad) / upsampling.
RC_GTEST_PROP(DepthwiseNhwcPlanProperty, AxesMeetTheInputsOfTheProblem, ()) {
  Axis axis;
  axis.taps = *rc::gen::inRange(1, 8), axis.pad = *rc::gen::inRange(-9, 10);
  if (*rc::gen::arbitrary<bool>()) {
    axis.upsampling = *rc::gen::inRange(2, 6);
  } else {
    axis.stride = *rc::gen::inRange(1, 7), axis.dilation = *rc::gen::inRange(1, 7);
  }
  const DepthwiseAxis seen(axis);
  for (std::int64_t residue = 0; residue < seen.residues; ++residue) {
    // The first input of a block, as the kernel computes it.
    const std::int64_t first = axis.upsampling > 1 ? seen.first : residue * axis.stride - axis.pad;
    for (std::int64_t i = 0; i < 12; ++i) {
      for (std::int64_t tap = 0; tap < axis.taps; ++tap) {
        const std::int64_t output = residue + i * seen.residues;
        const std::int64_t met = output * axis.stride + tap * axis.dilation - axis.pad;
        RC_ASSERT(seen.meets(i, tap) == (positive_modulo(met, axis.upsampling) == 0));
        if (seen.meets(i, tap)) RC_ASSERT((first + seen.met(i, tap) * axis.dilation) * axis.upsampling == met);
      }
    }
  }
}

// A dilated filter reads the pixels of one residue: no more than one without dilation.
TEST(DepthwiseNhwcPlan, DilationCostsNoPixels) {
  const Target target = parse_target("sm_90a");
  const auto cost = [&](const char* text) { return nhwc_candidates(parse_spec(text), target).front().plan.cost; };
  const auto dense = cost("input=8,256,64,64 weight=256,1,3,3 groups=256 padding=1 layout=nhwc");
  EXPECT_LE(cost("input=8,256,64,64 weight=256,1,3,3 groups=256 padding=8 dilation=8 layout=nhwc"), dense * 3 / 2);
}

TEST(DepthwiseNhwcPlan, IsNotOfferedForWhatItCannotDo) {
  for (const char* text :
       {"input=2,8,20,20 weight=8,2,3,3 groups=4 layout=nhwc", "input=2,8,20,20 weight=8,1,3,3 groups=8 layout=nchw",
        "input=2,8,20,20 weight=8,1,3,3 groups=8 input_layout=nhwc output_layout=nchw"})
    EXPECT_TRUE(nhwc_candidates(parse_spec(text), parse_target("sm_90a")).empty()) << text;
}

}  // namespace
}  // namespace jitconv::codegen
