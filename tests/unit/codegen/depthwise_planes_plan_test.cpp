// Statements about every candidate of the depthwise_planes family, as in depthwise_plan_test.cpp.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "codegen/arithmetic.h"
#include "codegen/bank_conflicts.h"
#include "support/random_specs.h"
#include "unit/codegen/found.h"
#include "unit/codegen/tile_cover.h"

namespace jitconv::codegen {
namespace {

using test::any_target;
using PlanesFound = test::Found<DepthwisePlanesTiling>;

std::vector<PlanesFound> planes_candidates(const ConvSpec& spec, const Target& target) {
  return test::found_candidates<DepthwisePlanesTiling>(spec, target);
}

ConvSpec any_planes_spec(const test::SpecLimits& limits = {}) {
  ConvSpec spec = test::any_spec_with_images(limits);
  // Tensors of whole vectors, as those of networks are.
  if (*rc::gen::inRange(0, 4) != 0) spec.input.c = round_up(spec.input.c, 8);
  spec.groups = spec.weight.k = spec.input.c;
  spec.weight.c = 1;
  spec.input_layout = spec.output_layout = Layout::nchw;
  if (*rc::gen::inRange(0, 3) == 0) spec.operation = Operation::data_gradient;
  return spec;
}

RC_GTEST_PROP(DepthwisePlanesPlanProperty, NumbersAgree, ()) {
  const Target target = any_target();
  for (const PlanesFound& one : planes_candidates(any_planes_spec(), target)) {
    const DepthwisePlanesTiling& t = one.tiling;
    const Problem& problem = one.problem;
    const Launch& launch = one.plan.convolution().launch;
    const std::int64_t planes = problem.n * problem.input_channels();
    RC_ASSERT(launch.threads == static_cast<std::uint32_t>(t.planes * t.threads_p(problem)));
    RC_ASSERT(launch.threads <= 256u);
    // No thread of a plane is without rows, and no block without planes.
    RC_ASSERT(t.threads_p(problem) * t.thread_p >= problem.rows.output);
    RC_ASSERT((t.threads_p(problem) - 1) * t.thread_p < problem.rows.output);
    RC_ASSERT(std::int64_t{launch.blocks} * t.planes >= planes);
    RC_ASSERT((std::int64_t{launch.blocks} - 1) * t.planes < planes);
    RC_ASSERT(launch.shared_bytes >= t.planes * problem.input_plane() * problem.input.element_bytes());
    RC_ASSERT(launch.shared_bytes >= t.planes * problem.output_plane() * problem.output.element_bytes());
    RC_ASSERT(launch.shared_bytes <= target.shared_bytes_per_block);
    if (!problem.is_upsampled())
      RC_ASSERT(t.read_rows(problem) == (t.thread_p - 1) * problem.rows.stride + problem.rows.reach() + 1);
    RC_ASSERT(t.thread_p % problem.rows.upsampling == 0);
    RC_ASSERT(t.share_weights == problem.is_upsampled());
    if (t.share_weights) {
      RC_ASSERT(t.weights_first_byte(problem) % 4 == 0);
      RC_ASSERT(t.weights_first_byte(problem) >= t.planes * problem.output_plane() * problem.output.element_bytes());
      RC_ASSERT(launch.shared_bytes >= t.weights_first_byte(problem) + 4 * t.planes * problem.taps());
    }
  }
}

RC_GTEST_PROP(DepthwisePlanesPlanProperty, VectorsAreOfOneRowAndRunsOfWholeVectors, ()) {
  const Target target = any_target();
  for (const PlanesFound& one : planes_candidates(any_planes_spec(), target)) {
    const DepthwisePlanesTiling& t = one.tiling;
    const Problem& problem = one.problem;
    const std::int64_t element = problem.input.element_bytes(), stored = problem.output.element_bytes();
    RC_ASSERT(problem.columns.input % t.read_vector == 0 && t.read_vector * element <= 16);
    RC_ASSERT(problem.columns.output % t.store_vector == 0 && t.store_vector * stored <= 16);
    RC_ASSERT(one.spec.alignment >= 16);
    const std::int64_t last = problem.n * problem.input_channels() % t.planes;
    for (const std::int64_t planes : {std::int64_t{t.planes}, last}) {
      RC_ASSERT(planes * problem.input_plane() * element % 16 == 0);
      RC_ASSERT(planes * problem.output_plane() * stored % 16 == 0);
    }
    RC_ASSERT(t.async_copy == (target.compute_capability() >= 80));
    if (t.store_pairs) RC_ASSERT(stored == 2 && target.compute_capability() >= 80);
  }
}

RC_GTEST_PROP(DepthwisePlanesPlanProperty, EachOutputIsComputedOnce, ()) {
  test::SpecLimits limits;
  limits.batch = 2, limits.channels_per_group = 6, limits.groups = 3, limits.outputs = 60;
  ConvSpec spec = any_planes_spec(limits);
  spec.operation = Operation::forward;  // whose outputs TileCover counts
  const TensorShape out = output_shape(spec);
  RC_PRE(out.n * out.c * out.h * out.w <= test::kFewOutputs);
  const std::vector<PlanesFound> found = planes_candidates(spec, any_target());
  if (found.empty()) return;
  const PlanesFound& one = found[*rc::gen::inRange<std::size_t>(0, found.size())];
  // Restates templates/depthwise_planes/: which outputs the threads of the blocks compute.
  test::TileCover cover(one.spec);
  const int threads_p = one.tiling.threads_p(one.problem);
  for (std::int64_t block = 0; block < one.plan.convolution().launch.blocks; ++block) {
    for (int thread = 0; thread < one.tiling.threads(one.problem); ++thread) {
      const std::int64_t plane = block * one.tiling.planes + thread / threads_p;
      for (int p = 0; p < one.tiling.thread_p; ++p)
        for (std::int64_t q = 0; q < out.w; ++q)
          cover.add(plane / out.c, plane % out.c, thread % threads_p * one.tiling.thread_p + p, q);
    }
  }
  RC_ASSERT(cover.each_once());
}

TEST(DepthwisePlanesPlan, ServesSmallPlanesOfNetworks) {
  const Target target = parse_target("sm_90a");
  for (const char* text :
       {"input=32,1152,7,7 weight=1152,1,3,3 groups=1152 padding=1 dtype=bf16",
        "input=96,384,14,14 weight=384,1,3,3 groups=384 padding=1",
        "input=32,240,28,28 weight=240,1,5,5 groups=240 padding=2 stride=2 dtype=f16",
        "input=1,512,14,14 weight=512,1,3,3 groups=512 padding=1 dtype=bf16",
        "operation=data_gradient input=96,384,14,14 weight=384,1,3,3 groups=384 padding=1",
        "operation=data_gradient input=32,672,14,14 weight=672,1,5,5 groups=672 padding=2 stride=2",
        "operation=data_gradient dtype=bf16 input=32,240,28,28 weight=240,1,3,3 groups=240 padding=1 stride=2"}) {
    const ConvPlan plan = make_plan(parse_spec(text), target);
    EXPECT_EQ(plan.family(), Family::depthwise_planes) << text;
    EXPECT_EQ(plan.kernels.size(), 1u) << text;
  }
}

TEST(DepthwisePlanesPlan, SaysWhatItCannotDo) {
  const auto why = [](const char* text) {
    std::string reason;
    candidates_of(Family::depthwise_planes, lower(canonical(parse_spec(text))), parse_target("sm_90a"), reason);
    return reason;
  };
  EXPECT_EQ(why("input=2,8,14,14 weight=8,2,3,3 groups=4"), "2 input channels per group, not 1");
  EXPECT_EQ(why("input=2,8,14,14 weight=16,1,3,3 groups=8"), "2 output channels per group, not 1");
  EXPECT_EQ(why("input=2,8,14,14 weight=8,1,3,3 groups=8 layout=nhwc"), "works on nchw tensors");
  EXPECT_EQ(why("input=2,8,56,56 weight=8,1,3,3 groups=8"), "rows of more than 32 outputs, or 64 inputs");
  EXPECT_EQ(why("input=2,8,14,14 weight=8,1,3,3 groups=8 alignment=8"),
            "tensors do not start at multiples of 16 bytes");
  EXPECT_EQ(why("input=1,7,7,7 weight=7,1,3,3 groups=7 padding=1"), "tensors do not end at multiples of 16 bytes");
  EXPECT_EQ(why("input=1,8,30,30 weight=8,1,15,15 groups=8 padding=7"),
            "no rows of a plane fit the registers of a thread");
  EXPECT_EQ(why("input=2,8,14,14 weight=8,1,3,3 groups=8 padding=1"), "");
  EXPECT_EQ(why("input=2,8,14,14 weight=8,1,1,1 groups=8 padding=1 operation=data_gradient"), "the input is cropped");
  EXPECT_EQ(why("input=2,8,14,14 weight=8,1,1,1 groups=8 padding=1 stride=2 operation=data_gradient"), "");
  EXPECT_EQ(why("input=2,8,56,56 weight=8,1,3,3 groups=8 stride=2 operation=data_gradient"),
            "rows of more than 32 outputs, or 64 inputs");
  EXPECT_EQ(why("input=2,8,28,28 weight=8,1,3,3 groups=8 stride=20 operation=data_gradient"),
            "no rows of a plane fit the registers of a thread");
}

// The CUDA C++ Programming Guide's cases.
TEST(BankConflicts, AreCountedInWavefronts) {
  const auto words_apart = [](std::int64_t words, std::int64_t bytes = 4) {
    return bank_wavefronts(bytes, kWarpSize, [words](std::int64_t lane) { return lane * words * 4; });
  };
  EXPECT_EQ(words_apart(0), 1);  // one word for all lanes
  EXPECT_EQ(words_apart(1), 1);
  EXPECT_EQ(words_apart(2), 2);
  EXPECT_EQ(words_apart(3), 1);
  EXPECT_EQ(words_apart(32), 32);
  EXPECT_EQ(words_apart(2, 8), 2);   // half a warp is a request
  EXPECT_EQ(words_apart(4, 16), 4);  // a quarter of one
  EXPECT_EQ(words_apart(8, 16), 8);
  EXPECT_EQ(bank_wavefronts(2, kWarpSize, [](std::int64_t lane) { return lane * 2; }), 1);
  EXPECT_EQ(bank_wavefronts(4, 1, [](std::int64_t lane) { return lane * 128; }), 1);
}

}  // namespace
}  // namespace jitconv::codegen
