// Statements about every plan, whatever its family: within the hardware's limits on every target, the same every time,
// the cheapest of the candidates; its kernels and what they read and write; and the proof that 32-bit offsets suffice.
#include "codegen/plan.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "codegen/arithmetic.h"
#include "codegen/cost.h"
#include "codegen/text/emitter.h"
#include "jitconv/error.h"
#include "support/random_specs.h"
#include "unit/codegen/kernel_bodies.h"
#include "unit/codegen/wgmma_candidates.h"

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
  for (const Scratch& region : plan.scratch) RC_ASSERT(region.bytes > 0 && region.bytes % 256 == 0);
  RC_ASSERT(plan.cost > 0);
}

RC_GTEST_PROP(PlanProperty, EveryPlanIsWithinTheLimitsOfItsTarget, ()) {
  const ConvSpec spec = with_outputs(*test::valid_specs());
  const Target target =
      parse_target(*rc::gen::elementOf(std::vector<std::string>(std::begin(kArchs), std::end(kArchs))));
  const std::vector<ConvPlan> plans = enumerate_plans(spec, target, SIZE_MAX);
  RC_ASSERT(!plans.empty());
  for (const ConvPlan& plan : plans) assert_within_limits(plan);
  RC_CLASSIFY(plans.front().family() == Family::wgmma, "wgmma");
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
  for (const Family family : {Family::pointwise, Family::wgmma, Family::direct, Family::depthwise,
                              Family::depthwise_nhwc, Family::depthwise_planes}) {
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
  EXPECT_TRUE(plan.kernels.empty());
  EXPECT_TRUE(plan.scratch.empty());
  EXPECT_THROW(plan.convolution(), InternalError);
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

// Kernels before and behind the convolution.

/// The cheapest plan of the wgmma family whose tiling `holds`.
template <typename Predicate>
ConvPlan wgmma_plan(const char* spec, Predicate holds) {
  for (ConvPlan& plan : enumerate_plans(parse_spec(spec), parse_target("sm_90a"), SIZE_MAX))
    if (const auto* tiling = plan.tiling<WgmmaTiling>(); tiling != nullptr && holds(*tiling)) return std::move(plan);
  throw std::logic_error(std::string("no such plan for ") + spec);
}

/// The tensors of a kernel's parameters by name, '>' before what it writes.
std::string tensors_of(const ConvPlan& plan, const KernelPlan& kernel) {
  std::string text;
  for (const Argument& argument : functions_of(kernel.family()).emit(kernel, "kernel").arguments) {
    if (!text.empty()) text += ' ';
    if (argument.written()) text += '>';
    text += test::name_of(argument.tensor, plan.scratch);
  }
  return text;
}

struct ExpectedKernel {
  Family family;
  const char* tensors;
};

void expect_kernels(const ConvPlan& plan, const std::vector<ExpectedKernel>& expected,
                    const std::vector<std::string>& regions) {
  ASSERT_EQ(plan.kernels.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const KernelPlan& kernel = plan.kernels[i];
    EXPECT_EQ(to_string(kernel.family()), to_string(expected[i].family)) << i;
    EXPECT_EQ(tensors_of(plan, kernel), expected[i].tensors) << i;
    EXPECT_EQ(kernel.starts_early, i > 0) << "what starts early waits for the one before, and the first has none";
    EXPECT_GE(kernel.launch.blocks, 1u);
  }
  ASSERT_EQ(plan.scratch.size(), regions.size());
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < regions.size(); ++i) {
    EXPECT_EQ(plan.scratch[i].name, regions[i]) << i;
    EXPECT_EQ(plan.scratch[i].bytes % 256, 0) << regions[i];
    EXPECT_GT(plan.scratch[i].bytes, 0) << regions[i];
    EXPECT_EQ(plan.scratch[i].is_packed_weights, regions[i] == "packed_w");
    bytes += plan.scratch[i].bytes;
  }
  EXPECT_EQ(plan.workspace_bytes(), bytes);
  const bool packs = !regions.empty() && regions.front() == "packed_w";
  EXPECT_EQ(plan.packed_weight_bytes(), packs ? plan.scratch.front().bytes : 0);
  EXPECT_EQ(plan.workspace_bytes_with_packed_weights(), bytes - plan.packed_weight_bytes());
}

constexpr const char* kFilter = "input=1,72,9,10 weight=24,72,3,3 padding=1 math=tf32 bias residual";
TEST(Passes, PackWeightsBeforeTheConvolution) {
  const ConvPlan plan = wgmma_plan(
      kFilter, [](const WgmmaTiling& t) { return t.packs_weights() && !t.transposes_input() && t.split_k == 1; });
  expect_kernels(plan, {{Family::pack_weights, "w >packed_w"}, {Family::wgmma, "x packed_w bias residual >y"}},
                 {"packed_w"});
  // The pass is of the convolution that was asked for, which finds its weights elsewhere.
  EXPECT_EQ(plan.kernels[0].problem, lower(plan.spec));
  Problem convolved = lower(plan.spec);
  convolved.weight.tensor = scratch_tensor(0);
  EXPECT_EQ(plan.convolution().problem, convolved);
  EXPECT_NE(to_string(plan).find("kernels: pack_weights, wgmma\n"), std::string::npos);
}

TEST(Passes, TransposeTheInputBeforeTheConvolution) {
  const ConvPlan plan = wgmma_plan(test::kStridedPointwise, [](const WgmmaTiling& t) {
    return !t.packs_weights() && t.transposes_input() && t.split_k == 1;
  });
  expect_kernels(plan, {{Family::transpose_input, "x >transposed_x"}, {Family::wgmma, "transposed_x w >y"}},
                 {"transposed_x"});
  EXPECT_EQ(plan.convolution().problem, transposed_problem(lower(plan.spec)));
  // The pass is of the convolution whose input it makes.
  EXPECT_EQ(plan.kernels[0].problem.input, plan.convolution().problem.input);
  EXPECT_EQ(std::get<TransposeInputTiling>(plan.kernels[0].tiling).source.tensor, Tensor::x);
}

TEST(Passes, PackThenTranspose) {
  const ConvPlan plan = wgmma_plan(
      kFilter, [](const WgmmaTiling& t) { return t.packs_weights() && t.transposes_input() && t.split_k == 1; });
  expect_kernels(plan,
                 {{Family::pack_weights, "w >packed_w"},
                  {Family::transpose_input, "x >transposed_x"},
                  {Family::wgmma, "transposed_x packed_w bias residual >y"}},
                 {"packed_w", "transposed_x"});
  EXPECT_EQ(plan.convolution().problem.weight.tensor, scratch_tensor(0));
  EXPECT_EQ(plan.convolution().problem.input.tensor, scratch_tensor(1));
}

TEST(Passes, AddPartialSumsBehindTheConvolution) {
  const ConvPlan plan = wgmma_plan(test::kStridedPointwise, [](const WgmmaTiling& t) {
    return !t.packs_weights() && !t.transposes_input() && t.split_k > 1;
  });
  expect_kernels(plan, {{Family::wgmma, "x w >partial_sums"}, {Family::reduce, "partial_sums >y"}}, {"partial_sums"});
  EXPECT_EQ(plan.convolution().problem.output.tensor, scratch_tensor(0));
  EXPECT_EQ(plan.kernels[1].problem.output.tensor, Tensor::y);
  const auto& tiling = std::get<ReduceTiling>(plan.kernels[1].tiling);
  EXPECT_EQ(tiling.split_k, plan.tiling<WgmmaTiling>()->split_k);
  EXPECT_EQ(plan.workspace_bytes(), 4 * tiling.split_k * tiling.sums.stride);
  EXPECT_GE(tiling.sums.stride, plan.kernels[1].problem.output_elements());
}

// The epilogue is the last kernel's: it must not be applied to each split's sums.
TEST(Passes, PackTransposeAndAddPartialSums) {
  const ConvPlan plan = wgmma_plan(
      kFilter, [](const WgmmaTiling& t) { return t.packs_weights() && t.transposes_input() && t.split_k > 1; });
  expect_kernels(plan,
                 {{Family::pack_weights, "w >packed_w"},
                  {Family::transpose_input, "x >transposed_x"},
                  {Family::wgmma, "transposed_x packed_w >partial_sums"},
                  {Family::reduce, "partial_sums bias residual >y"}},
                 {"packed_w", "partial_sums", "transposed_x"});
  EXPECT_EQ(&plan.convolution(), &plan.kernels[2]);
}

TEST(Passes, AreOfThePointwiseFamilyToo) {
  for (const ConvPlan& plan : enumerate_plans(parse_spec("input=1,1024,14,14 weight=256,1024,1,1 math=tf32 bias"),
                                              parse_target("sm_90a"), SIZE_MAX)) {
    const auto* tiling = plan.tiling<PointwiseTiling>();
    if (tiling == nullptr || tiling->splits == 1) continue;
    return expect_kernels(plan, {{Family::pointwise, "x w >partial_sums"}, {Family::reduce, "partial_sums bias >y"}},
                          {"partial_sums"});
  }
  FAIL() << "no plan splits the reduction";
}

TEST(Passes, KernelsOfCudaCoresHaveNone) {
  for (const char* text :
       {"input=8,64,56,56 weight=64,64,3,3 bias math=ieee", "input=8,64,56,56 weight=64,1,3,3 groups=64 bias"}) {
    const ConvPlan plan = make_plan(parse_spec(text), parse_target("sm_90a"));
    expect_kernels(plan, {{plan.family(), "x w bias >y"}}, {});
    EXPECT_EQ(to_string(plan).find("kernels: "), std::string::npos) << text;
  }
}

// The same convolution kernel for more images: passes fit the new spec.
TEST(Passes, OfAPlanForAnotherSpecFitThatSpec) {
  const ConvPlan plan = wgmma_plan(kFilter, [](const WgmmaTiling& t) {
    return t.packs_weights() && t.transposes_input() && t.split_k == 1 && t.tile.images == 0;
  });
  ConvSpec more = plan.spec;
  more.input.n = 3;
  const ConvPlan like = plan_like(plan, more, 7);
  EXPECT_EQ(like.spec, more);
  EXPECT_EQ(like.convolution().tiling, plan.convolution().tiling);
  EXPECT_EQ(like.convolution().launch.blocks, 7u);
  EXPECT_EQ(like.convolution().launch.threads, plan.convolution().launch.threads);
  EXPECT_EQ(like.convolution().problem.n, 3);
  ASSERT_EQ(like.kernels.size(), 3u);
  EXPECT_EQ(like.kernels[0].launch, plan.kernels[0].launch) << "weights are the same";
  const auto& transposing = std::get<TransposeInputTiling>(like.kernels[1].tiling);
  EXPECT_EQ(like.kernels[1].launch.blocks,
            ceil_div(3 * 9 * 10, transposing.pixels) * ceil_div(72 / 4, transposing.slices));
  EXPECT_EQ(like.packed_weight_bytes(), plan.packed_weight_bytes());
  EXPECT_GT(like.workspace_bytes(), plan.workspace_bytes());
}

RC_GTEST_PROP(PassesProperty, EachRegionIsWrittenBeforeItIsRead, ()) {
  const std::vector<ConvPlan> plans = enumerate_plans(with_outputs(*test::valid_specs()), parse_target("sm_90a"), 40);
  for (const ConvPlan& plan : plans) {
    std::set<Tensor> written;
    for (const KernelPlan& kernel : plan.kernels) {
      std::vector<Tensor> writes;
      for (const Argument& argument : functions_of(kernel.family()).emit(kernel, "kernel").arguments) {
        if (argument.written()) {
          writes.push_back(argument.tensor);
          continue;
        }
        RC_ASSERT(argument.tensor != Tensor::y);
        RC_ASSERT(!is_scratch(argument.tensor) || written.contains(argument.tensor));
      }
      RC_ASSERT(writes.size() == 1u);
      // The range of w lies behind packed weights.
      const bool is_first = written.insert(writes.front()).second;
      RC_ASSERT(is_first || (kernel.family() == Family::pack_weights &&
                             plan.kernels.front().family() == Family::find_weight_range));
    }
    RC_ASSERT(written.contains(Tensor::y));
    RC_ASSERT(written.size() == plan.scratch.size() + 1);
  }
}

// 32-bit offsets.

constexpr std::int64_t kLargest = INT32_MAX;

Problem problem_of(std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w, std::int64_t k) {
  ConvSpec spec;
  spec.input = {n, c, h, w};
  spec.weight = {k, c, 1, 1};
  return lower(spec);
}

TEST(WideIndex, AnInputOffsetOfTwoToThe31NeedsIt) {
  const Problem problem = problem_of(1, 2, 1, (kLargest - 1) / 2, 1);  // 2^31 - 2 elements, the output half of that
  EXPECT_FALSE(needs_wide_index(problem, {0, 0}));
  EXPECT_FALSE(needs_wide_index(problem, {1, 0}));
  EXPECT_TRUE(needs_wide_index(problem, {2, 0}));
}

TEST(WideIndex, AnOutputOffsetOfTwoToThe31NeedsIt) {
  EXPECT_TRUE(needs_wide_index(problem_of(16, 4, 1024, 1024, 128), {0, 0})) << "exactly 2^31";
  EXPECT_TRUE(needs_wide_index(problem_of(1, 1, 1, kLargest, 1), {0, 0})) << "2^31 - 1 and a tile's overhang";
  EXPECT_FALSE(needs_wide_index(problem_of(15, 4, 1024, 1024, 128), {0, 0}));
}

TEST(WideIndex, AFilterOffsetOfTwoToThe31NeedsIt) {
  const Problem problem = problem_of(1, 32768, 1, 1, 65535);  // 2^31 - 2^15 elements
  EXPECT_FALSE(needs_wide_index(problem, {0, 0}));
  EXPECT_FALSE(needs_wide_index(problem, {0, 32767}));
  EXPECT_TRUE(needs_wide_index(problem, {0, 32768}));
}

RC_GTEST_PROP(WideIndexProperty, NarrowPlansHaveNarrowTensors, ()) {
  // Around the edge, where a mistake in the proof would show.
  const std::int64_t c = *rc::gen::elementOf(std::vector<std::int64_t>{1, 3, 16, 64});
  const std::int64_t k = *rc::gen::elementOf(std::vector<std::int64_t>{1, 5, 64, 128});
  const std::int64_t h = *rc::gen::inRange<std::int64_t>(500, 1100), w = *rc::gen::inRange<std::int64_t>(500, 1100);
  const std::int64_t edge = (std::int64_t{1} << 31) / (std::max(c, k) * h * w);
  ConvSpec spec;
  spec.input = {std::max<std::int64_t>(1, edge + *rc::gen::inRange<std::int64_t>(-2, 3)), c, h, w};
  spec.weight = {k, c, 1, 1};
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

TEST(WideIndex, CountsAddressesThatDirectTilesFormBehindTheEnd) {
  // 2^20 elements less than 2^31; a chunk of channels is at least a plane of 2^22.
  const ConvSpec spec = parse_spec("input=1,512,2048,2047 weight=4,512,3,3 math=ieee");
  int plans = 0;
  for (const ConvPlan& plan : enumerate_plans(spec, parse_target("sm_80"), SIZE_MAX)) {
    if (plan.family() != Family::direct) continue;
    EXPECT_TRUE(plan.convolution().wide_index);
    ++plans;
  }
  EXPECT_GT(plans, 0);
}

TEST(Depthwise, HasPlansForPlanesOfUpTo2To30Elements) {
  const auto plans = [](const char* text) {
    const std::vector<ConvPlan> all = enumerate_plans(parse_spec(text), parse_target("sm_80"), SIZE_MAX);
    return std::count_if(all.begin(), all.end(), [](const ConvPlan& p) { return p.family() == Family::depthwise; });
  };
  EXPECT_GT(plans("input=1,1,32768,32768 weight=1,1,3,3"), 0);
  EXPECT_EQ(plans("input=1,1,32768,32769 weight=1,1,3,3"), 0);
}

}  // namespace
}  // namespace jitconv::codegen
