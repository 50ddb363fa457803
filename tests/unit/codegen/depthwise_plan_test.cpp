// Statements about every candidate of the depthwise family, as in direct_plan_test.cpp; and when each store is allowed.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "codegen/arithmetic.h"
#include "support/random_specs.h"
#include "unit/codegen/found.h"
#include "unit/codegen/tile_cover.h"

namespace jitconv::codegen {
namespace {

using Store = DepthwiseTiling::Store;

using test::any_target;
using Found = test::Found<DepthwiseTiling>;

std::vector<Found> candidates(const ConvSpec& spec, const Target& target) {
  return test::found_candidates<DepthwiseTiling>(spec, target);
}

RC_GTEST_PROP(DepthwisePlanProperty, NumbersAgree, ()) {
  const Target target = any_target();
  for (const Found& one : candidates(test::any_depthwise_spec(Layout::nchw), target)) {
    const DepthwiseTiling& t = one.tiling;
    const ConvSpec& spec = one.spec;
    const TensorShape out = output_shape(spec);
    RC_ASSERT(one.plan.convolution().launch.threads ==
              static_cast<std::uint32_t>(t.threads_p * t.threads_q * t.planes));
    RC_ASSERT(t.thread_q * spec.stride.w % 4 == 0);
    RC_ASSERT(t.input_pitch % 4 == 0);
    RC_ASSERT(t.input_rows(one.problem) ==
              (t.tile_p() - 1) * spec.stride.h + (spec.weight.r - 1) * spec.dilation.h + 1);
    RC_ASSERT(t.window(one.problem) >
              t.column_shift + (t.thread_q - 1) * spec.stride.w + (spec.weight.s - 1) * spec.dilation.w);
    RC_ASSERT((t.tile_q() - t.thread_q) * spec.stride.w + t.window(one.problem) <= t.input_pitch);
    RC_ASSERT(t.planes >= 1);
    if (t.planes > 1) {
      RC_ASSERT(t.tile_p() >= out.h && t.tile_q() >= out.w);
      RC_ASSERT(spec.weight.k == spec.groups);
      RC_ASSERT(t.planes <= spec.input.n * spec.input.c);
    }
    if (t.async_copy) RC_ASSERT(spec.dtype == DataType::f32 && target.compute_capability() >= 80);
    const std::int64_t weights = t.planes * (spec.weight.k / spec.groups) * spec.weight.r * spec.weight.s;
    RC_ASSERT(one.plan.convolution().launch.shared_bytes >= 4 * (t.input_floats(one.problem) + weights));
  }
}

RC_GTEST_PROP(DepthwisePlanProperty, CopiesAreWhollyInsideOrOutsideARow, ()) {
  for (const Found& one : candidates(test::any_depthwise_spec(Layout::nchw), any_target())) {
    const DepthwiseTiling& t = one.tiling;
    const ConvSpec& spec = one.spec;
    RC_ASSERT(t.copy_vector * element_bytes(spec.dtype) <= std::min<std::int64_t>(16, spec.alignment));
    RC_ASSERT(spec.input.w % t.copy_vector == 0);
    RC_ASSERT(t.input_pitch % t.copy_vector == 0);
    RC_ASSERT(t.column_shift >= 0 && t.column_shift < t.copy_vector);
    RC_ASSERT((spec.padding.left + t.column_shift) % t.copy_vector == 0);
    const bool one_tile = t.tile_q() >= output_shape(spec).w;
    RC_ASSERT(one_tile || t.tile_q() * spec.stride.w % t.copy_vector == 0);
  }
}

RC_GTEST_PROP(DepthwisePlanProperty, StoresAreAllowed, ()) {
  for (const Found& one : candidates(test::any_depthwise_spec(Layout::nchw), any_target())) {
    const DepthwiseTiling& t = one.tiling;
    const ConvSpec& spec = one.spec;
    const TensorShape out = output_shape(spec);
    switch (t.store) {
      case Store::vector: {
        const std::int64_t bytes = t.thread_q * element_bytes(spec.dtype);
        RC_ASSERT(out.w % t.thread_q == 0 && bytes <= 16 && bytes <= spec.alignment);
        break;
      }
      case Store::flat: {
        // One run of addresses: whole rows, all of them neighbours.
        RC_ASSERT(t.tile_q() >= out.w);
        const std::int64_t run = t.planes > 1 ? t.planes * out.h * out.w : std::int64_t{t.tile_p()} * out.w;
        RC_ASSERT(one.plan.convolution().launch.shared_bytes >=
                  4 * (t.store_first_float(one.problem) + run + t.store_vector(one.problem) - 1));
        RC_ASSERT(t.store_vector(one.problem) * element_bytes(spec.dtype) <=
                  std::min<std::int64_t>(16, spec.alignment));
        break;
      }
      case Store::rows:
        // A warp writes a row of one plane.
        RC_ASSERT(t.planes == 1 && t.threads() % kWarpSize == 0);
        RC_ASSERT(one.plan.convolution().launch.shared_bytes >=
                  4 * (t.store_first_float(one.problem) + std::int64_t{t.tile_p()} * t.tile_q()));
        break;
    }
    // Staged outputs of one multiple must not lie over the input and weights that the next one reads.
    if (spec.weight.k > spec.groups && t.store != Store::vector)
      RC_ASSERT(t.store_first_float(one.problem) >=
                t.input_floats(one.problem) + t.planes * (spec.weight.k / spec.groups) * spec.weight.r * spec.weight.s);
  }
}

/// Restates templates/depthwise/kernel.cu.in: which outputs the threads of the blocks compute.
bool covers_each_output_once(const Found& one) {
  const DepthwiseTiling& t = one.tiling;
  const ConvSpec& spec = one.spec;
  test::TileCover cover(spec);
  const TensorShape& out = cover.shape();
  const std::int64_t multiplier = spec.weight.k / spec.groups, planes = spec.input.n * spec.input.c;
  const std::int64_t tiles_q = ceil_div(out.w, t.tile_q()), tiles_p = ceil_div(out.h, t.tile_p());
  if (one.plan.convolution().launch.blocks != ceil_div(planes, t.planes) * tiles_p * tiles_q) return false;
  for (std::int64_t block = 0; block < one.plan.convolution().launch.blocks; ++block) {
    const std::int64_t q_tile = block % tiles_q, p_tile = block / tiles_q % tiles_p;
    const std::int64_t plane_block = block / tiles_q / tiles_p * t.planes;
    for (int thread = 0; thread < t.threads(); ++thread) {
      const std::int64_t q0 = q_tile * t.tile_q() + thread % t.threads_q * t.thread_q;
      const std::int64_t p0 = p_tile * t.tile_p() + thread / t.threads_q % t.threads_p * t.thread_p;
      const std::int64_t plane = plane_block + thread / (t.threads_q * t.threads_p);
      if (plane >= planes) continue;
      for (std::int64_t m = 0; m < multiplier; ++m)
        for (int p = 0; p < t.thread_p; ++p)
          for (int q = 0; q < t.thread_q; ++q)
            cover.add(plane / spec.input.c, plane % spec.input.c * multiplier + m, p0 + p, q0 + q);
    }
  }
  return cover.each_once();
}

RC_GTEST_PROP(DepthwisePlanProperty, EachOutputIsComputedOnce, ()) {
  test::SpecLimits limits;
  limits.batch = 2, limits.channels_per_group = 6, limits.groups = 3, limits.outputs = 60;
  const ConvSpec spec = test::any_depthwise_spec(Layout::nchw, limits);
  const TensorShape out = output_shape(spec);
  RC_PRE(out.n * out.c * out.h * out.w <= test::kFewOutputs);
  const std::vector<Found> found = candidates(spec, any_target());
  if (found.empty()) return;
  RC_ASSERT(covers_each_output_once(found.front()));
  RC_ASSERT(covers_each_output_once(found[*rc::gen::inRange<std::size_t>(0, found.size())]));
}

TEST(DepthwisePlan, HasEveryStore) {
  const auto stores = [](const char* text) {
    std::vector<int> counts(3, 0);
    for (const Found& one : candidates(parse_spec(text), parse_target("sm_90a")))
      ++counts[static_cast<std::size_t>(one.tiling.store)];
    return counts;
  };
  EXPECT_GT(stores("input=16,64,512,512 weight=64,1,3,3 padding=1 groups=64")[0], 0);
  EXPECT_GT(stores("input=5,9,7,7 weight=9,1,3,3 groups=9 padding=1")[1], 0);
  EXPECT_GT(stores("input=2,3,19,2502 weight=3,1,3,3 groups=3 padding=1,1,0,1")[2], 0);
}

// Measured on an H200: the first two take 1.19 and 1.11 times as long in two blocks of 392 threads.
TEST(DepthwisePlan, BlocksThatCopyThroughRegistersAreThreeOnAnSm) {
  for (const char* text : {"input=96,96,112,112 weight=96,1,3,3 stride=2 padding=1 groups=96 dtype=bf16",
                           "input=32,64,112,112 weight=64,1,3,3 stride=2 padding=1 groups=64 dtype=bf16",
                           "input=32,144,56,56 weight=144,1,3,3 padding=1 groups=144 dtype=f16"}) {
    const std::vector<Found> found = candidates(parse_spec(text), parse_target("sm_90a"));
    ASSERT_FALSE(found.empty()) << text;
    EXPECT_FALSE(found.front().tiling.async_copy) << text;
    EXPECT_GE(found.front().plan.convolution().launch.min_blocks_per_sm, 3) << text;
  }
}

TEST(DepthwisePlan, IsNotOfferedForWhatItCannotDo) {
  for (const char* text : {"input=2,8,20,20 weight=8,2,3,3 groups=4",
                           "input=2,8,20,20 weight=8,1,3,3 groups=8 input_layout=nhwc output_layout=nhwc",
                           "input=1,1,40000,40000 weight=1,1,3,3 groups=1"})
    EXPECT_TRUE(candidates(parse_spec(text), parse_target("sm_90a")).empty()) << text;
}

}  // namespace
}  // namespace jitconv::codegen
