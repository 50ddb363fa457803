// Statements about every candidate of the direct family: the numbers agree with each other, windows and copies stay
// inside the tile, and blocks, warps and lanes compute each output once.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "codegen/arithmetic.h"
#include "codegen/plan.h"
#include "support/random_specs.h"
#include "unit/codegen/found.h"
#include "unit/codegen/tile_cover.h"

namespace jitconv::codegen {
namespace {

using test::any_target;
using DirectFound = test::Found<DirectTiling>;

std::vector<DirectFound> direct_candidates(const ConvSpec& spec, const Target& target) {
  return test::found_candidates<DirectTiling>(spec, target);
}

RC_GTEST_PROP(DirectPlanProperty, NumbersAgree, ()) {
  for (const DirectFound& one : direct_candidates(test::any_spec_with_images(), any_target())) {
    const DirectTiling& t = one.tiling;
    const ConvSpec& spec = one.spec;
    RC_ASSERT(t.lanes_p * t.lanes_q == kWarpSize);
    RC_ASSERT(one.plan.convolution().launch.threads ==
              static_cast<std::uint32_t>(kWarpSize * t.warps_k * t.warps_p * t.warps_q));
    RC_ASSERT(t.stages >= 2);
    RC_ASSERT(t.chunk_c >= 1);
    RC_ASSERT(t.unroll_c >= 1 && t.chunk_c % t.unroll_c == 0);
    RC_ASSERT(t.thread_k * t.thread_p * t.thread_q <= 128);
    if (spec.output_layout == Layout::nchw)
      RC_ASSERT(t.store_channels > 0 && t.thread_k % std::min(t.store_channels, t.thread_k) == 0);
    // Rows are read from shared memory 16 bytes at a time.
    RC_ASSERT(t.thread_q * spec.stride.w % 4 == 0);
    RC_ASSERT(t.input_pitch % 4 == 0);
    RC_ASSERT(t.weight_pitch % 4 == 0 || t.thread_k % 4 != 0);
    RC_ASSERT(t.block_k() <= t.weight_pitch);
    // cp.async exists from sm_80 on and does not convert.
    if (t.async_copy) RC_ASSERT(spec.dtype == DataType::f32 && one.target.compute_capability() >= 80);
  }
}

RC_GTEST_PROP(DirectPlanProperty, WindowsStayInsideTheTile, ()) {
  for (const DirectFound& one : direct_candidates(test::any_spec_with_images(), any_target())) {
    const DirectTiling& t = one.tiling;
    const ConvSpec& spec = one.spec;
    const std::int64_t last_row = (t.block_p() - 1) * spec.stride.h + (spec.weight.r - 1) * spec.dilation.h;
    RC_ASSERT(t.input_rows(one.problem) == last_row + 1);
    const std::int64_t last_tap =
        t.column_shift + (t.thread_q - 1) * spec.stride.w + (spec.weight.s - 1) * spec.dilation.w;
    RC_ASSERT(t.window(one.problem) > last_tap);
    RC_ASSERT(t.window(one.problem) % 4 == 0);
    RC_ASSERT((t.block_q() - t.thread_q) * spec.stride.w + t.window(one.problem) <= t.input_pitch);
    RC_ASSERT(t.input_stage_floats(one.problem) >= std::int64_t{t.chunk_c} * t.input_rows(one.problem) * t.input_pitch);
    RC_ASSERT(t.weight_stage_floats(one.problem) >= t.chunk_c * spec.weight.r * spec.weight.s * t.weight_pitch);
    RC_ASSERT(one.plan.convolution().launch.shared_bytes >=
              4 * t.stages * (t.input_stage_floats(one.problem) + t.weight_stage_floats(one.problem)));
  }
}

RC_GTEST_PROP(DirectPlanProperty, CopiesAreWhollyInsideOrOutsideARow, ()) {
  for (const DirectFound& one : direct_candidates(test::any_spec_with_images(), any_target())) {
    const DirectTiling& t = one.tiling;
    const ConvSpec& spec = one.spec;
    RC_ASSERT(t.copy_vector * element_bytes(spec.dtype) <= 16);
    RC_ASSERT(t.column_shift >= 0 && t.column_shift < t.copy_vector);
    if (spec.input_layout == Layout::nhwc) {
      RC_ASSERT(t.copy_vector == 1);
      continue;
    }
    RC_ASSERT(t.copy_vector * element_bytes(spec.dtype) <= spec.alignment);
    RC_ASSERT(spec.input.w % t.copy_vector == 0);
    RC_ASSERT(t.input_pitch % t.copy_vector == 0);
    RC_ASSERT((spec.padding.left + t.column_shift) % t.copy_vector == 0);
    const bool one_tile = t.block_q() >= output_shape(spec).w;
    RC_ASSERT(one_tile || t.block_q() * spec.stride.w % t.copy_vector == 0);
    // The kernel keeps one bit per copy of a lane in 32 bits: which of its columns lie in the image.
    RC_ASSERT(ceil_div(t.input_pitch, kWarpSize * t.copy_vector) <= 32);
  }
}

RC_GTEST_PROP(DirectPlanProperty, NhwcVectorsFit, ()) {
  for (const DirectFound& one : direct_candidates(test::any_spec_with_images(), any_target())) {
    if (one.spec.output_layout != Layout::nhwc) continue;
    const int vector = one.tiling.store_vector(one.problem);
    RC_ASSERT(vector >= 1);
    RC_ASSERT(vector * element_bytes(one.spec.dtype) <= std::min<std::int64_t>(16, one.spec.alignment));
    RC_ASSERT(one.tiling.thread_k % vector == 0);
    RC_ASSERT(one.spec.weight.k / one.spec.groups % vector == 0);
    RC_ASSERT(one.plan.convolution().launch.shared_bytes >=
              4u * one.plan.convolution().launch.threads * static_cast<unsigned>(one.tiling.thread_k));
  }
}

/// Restates templates/direct/kernel.cu.in: which outputs the lanes of the blocks compute.
bool direct_covers_each_output_once(const DirectFound& one) {
  const DirectTiling& t = one.tiling;
  const ConvSpec& spec = one.spec;
  test::TileCover cover(spec);
  const TensorShape& out = cover.shape();
  const std::int64_t group_k = spec.weight.k / spec.groups;
  const std::int64_t tiles_k = ceil_div(group_k, t.block_k()), tiles_p = ceil_div(out.h, t.block_p()),
                     tiles_q = ceil_div(out.w, t.block_q());
  if (one.plan.convolution().launch.blocks != out.n * spec.groups * tiles_k * tiles_p * tiles_q) return false;
  for (std::int64_t index = 0; index < one.plan.convolution().launch.blocks; ++index) {
    std::int64_t block = index;
    const auto take = [&block](std::int64_t extent) {
      const std::int64_t digit = block % extent;
      block /= extent;
      return digit;
    };
    const std::int64_t k_tile = take(tiles_k), q_tile = take(tiles_q), p_tile = take(tiles_p),
                       group = take(spec.groups);
    for (int thread = 0; thread < t.threads(); ++thread) {
      const int warp = thread / kWarpSize, lane = thread % kWarpSize;
      const std::int64_t k0 = k_tile * t.block_k() + warp % t.warps_k * t.thread_k;
      const std::int64_t p0 = p_tile * t.block_p() + warp / t.warps_k / t.warps_q * t.warp_p() + lane / t.lanes_q;
      const std::int64_t q0 =
          q_tile * t.block_q() + warp / t.warps_k % t.warps_q * t.warp_q() + lane % t.lanes_q * t.thread_q;
      for (int k = 0; k < t.thread_k && k0 + k < group_k; ++k)
        for (int p = 0; p < t.thread_p; ++p)
          for (int q = 0; q < t.thread_q; ++q) cover.add(block, group * group_k + k0 + k, p0 + p * t.lanes_p, q0 + q);
    }
  }
  return cover.each_once();
}

RC_GTEST_PROP(DirectPlanProperty, EachOutputIsComputedOnce, ()) {
  test::SpecLimits limits;
  limits.batch = 2, limits.channels_per_group = 20, limits.groups = 3, limits.outputs = 40;
  ConvSpec spec = *test::valid_specs(limits);
  if (spec.input.n == 0) spec.input.n = 1;
  const TensorShape out = output_shape(spec);
  RC_PRE(out.n * out.c * out.h * out.w <= test::kFewOutputs);
  const std::vector<DirectFound> found = direct_candidates(spec, any_target());
  if (found.empty()) return;
  RC_ASSERT(direct_covers_each_output_once(found.front()));
  RC_ASSERT(direct_covers_each_output_once(found[*rc::gen::inRange<std::size_t>(0, found.size())]));
}

// Without these the properties above could hold for want of candidates.
TEST(DirectPlan, HasCandidatesForOrdinarySpecs) {
  const char* const nhwc = "input=2,16,30,30 weight=16,16,3,3 input_layout=nhwc output_layout=nhwc dtype=f16";
  for (const char* text : {"input=8,64,512,1024 weight=128,64,3,3", "input=256,3,224,224 weight=96,3,11,11 stride=4",
                           "input=8,64,128,128 weight=1,64,3,3", nhwc, "input=1,512,7,7 weight=512,512,7,7"}) {
    EXPECT_GE(direct_candidates(parse_spec(text), parse_target("sm_90a")).size(), 4u) << text;
    EXPECT_GE(direct_candidates(parse_spec(text), parse_target("sm_75")).size(), 1u) << text;
  }
}

TEST(DirectPlan, WideRowsHaveNoMoreCopiesThanTheMaskHasBits) {
  for (const char* text :
       {"input=1,4,64,2001 weight=8,4,3,5 dilation=1,300", "input=1,4,64,2001 weight=8,4,3,3 stride=1,17",
        "input=1,4,100,4001 weight=8,4,1,3 dilation=1,900"})
    for (const DirectFound& one : direct_candidates(parse_spec(text), parse_target("sm_90a")))
      ASSERT_LE(ceil_div(one.tiling.input_pitch, kWarpSize * one.tiling.copy_vector), 32) << text;
}

TEST(DirectPlan, UnrollingStaysWithinTheBudget) {
  for (const char* text : {"input=1,64,128,128 weight=64,64,31,31 padding=15", "input=1,3,224,224 weight=64,3,21,21"}) {
    for (const DirectFound& one : direct_candidates(parse_spec(text), parse_target("sm_90a"))) {
      const DirectTiling& t = one.tiling;
      const std::int64_t rows = t.unroll_rows ? one.spec.weight.r : 1;
      ASSERT_LE(t.unroll_c * rows * one.spec.weight.s * t.thread_k * t.thread_p * t.thread_q, 3000) << text;
    }
  }
}

}  // namespace
}  // namespace jitconv::codegen
