// The pass that adds partial sums, as a part of a plan.
#include "codegen/reduce/pass.h"

#include <algorithm>

#include "codegen/arithmetic.h"
#include "codegen/cost.h"
#include "codegen/phases.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

/// Channels of a pixel that a thread stores: vectors of up to 16 bytes where they are neighbours. Where they are not,
/// finding a pixel's phase is worth a few.
int interleaved_channels(const Problem& gradient) {
  const std::int64_t most = gradient.output.layout() == Layout::nchw
                                ? 4
                                : std::min<std::int64_t>(16, gradient.alignment) / gradient.output.element_bytes();
  int channels = 1;
  while (2 * channels <= most && gradient.k % (2 * channels) == 0) channels *= 2;
  return channels;
}

std::string describe(const KernelPlan& kernel) {
  return fmt::format("reduction: split over {} blocks, partial sums added by another kernel\n",
                     std::get<ReduceTiling>(kernel.tiling).split_k);
}

/// Kernels may start before the one before them ends, as GPUs can from sm_90 on.
bool may_overlap(const Target& target) { return target.compute_capability() >= 90; }

/// The problem whose output is dw.
Problem gradient_problem(const Problem& asked) {
  Problem problem = asked;
  problem.reduction = Reduction::taps;
  problem.n = problem.groups = problem.k = 1;
  problem.output = asked.weight;
  problem.rows.output = asked.weight_elements();
  problem.columns.output = 1;
  problem.epilogue.bias = false;
  return problem;
}

/// Adds the pass to the plan, a thread for each of `sums` sums, with a region of scratch for the partial ones.
void add_pass(ConvPlan& plan, const Problem& problem, ReduceTiling tiling, std::int64_t sums) {
  tiling.partial_sums = scratch_tensor(plan.scratch.size());
  KernelPlan pass;
  pass.problem = problem;
  pass.tiling = tiling;
  pass.launch.blocks = static_cast<std::uint32_t>(ceil_div(sums, ReduceTiling::kThreads));
  pass.launch.threads = ReduceTiling::kThreads;
  pass.starts_early = may_overlap(plan.target);
  plan.scratch.push_back({"partial_sums", 4 * tiling.split_k * tiling.stride});
  plan.kernels.push_back(pass);
}

/// As many filters as fill the GPU's SMs with several blocks, and fit the shared memory that every kernel may take.
int block_filters(const Problem& problem, const Target& target) {
  constexpr std::int64_t kMost = 128, kBlocksOfSm = 4, kSharedFloats = kMostTaps;
  const std::int64_t taps = problem.taps(), filters = problem.weight_elements() / taps;
  std::int64_t result = kMost;
  while (result > 1 && (result * taps > kSharedFloats || filters / result < kBlocksOfSm * target.sm_count)) {
    if (result * taps <= kSharedFloats && result <= 8) break;  // whole sectors are read
    result /= 2;
  }
  return static_cast<int>(result);
}

}  // namespace

std::int64_t gradient_elements(const Problem& problem) {
  return problem.weight_elements() + (problem.epilogue.bias ? problem.output_channels() : 0);
}

void add_gradient_reduction(ConvPlan& plan, std::int64_t splits, GradientSums order) {
  const Problem& asked = plan.convolution().problem;
  ReduceTiling tiling;
  tiling.split_k = static_cast<int>(splits);
  tiling.stride = round_up(gradient_elements(asked), 64);
  tiling.bias_sums = gradient_elements(asked) - asked.weight_elements();
  const Problem problem = gradient_problem(asked);
  if (order == GradientSums::tap_k_c && asked.taps() > 1) tiling.block_filters = block_filters(asked, plan.target);
  add_pass(plan, problem, tiling, gradient_elements(asked));
  if (tiling.block_filters == 0) return;
  Launch& launch = plan.kernels.back().launch;
  launch.blocks =
      static_cast<std::uint32_t>(tiling.filter_blocks(problem) + ceil_div(tiling.bias_sums, ReduceTiling::kThreads));
  launch.shared_bytes = static_cast<std::uint32_t>(4 * tiling.block_filters * asked.taps());
}

void add_reduction(ConvPlan& plan, int split_k, std::int64_t stride, Relu relu) {
  const Problem problem = plan.convolution().problem;
  ReduceTiling tiling;
  tiling.split_k = split_k;
  tiling.stride = stride;
  tiling.relu = relu;
  plan.convolution().problem.output.tensor = scratch_tensor(plan.scratch.size());
  add_pass(plan, problem, tiling, problem.output_elements());
}

void add_interleaving(ConvPlan& plan, const Problem& gradient) {
  if (plan.kernels.back().family() != Family::reduce)
    add_reduction(plan, 1, round_up(plan.convolution().problem.output_elements(), 64), Relu::comparison);
  KernelPlan& pass = plan.kernels.back();
  pass.problem = gradient;
  auto& tiling = std::get<ReduceTiling>(pass.tiling);
  tiling.channels = interleaved_channels(gradient);
  const std::int64_t items = gradient.output_elements() / tiling.channels;
  pass.wide_index = items > INT32_MAX - ReduceTiling::kThreads;
  pass.launch.blocks = static_cast<std::uint32_t>(ceil_div(items, ReduceTiling::kThreads));
}

std::int64_t interleaving_cost(const Problem& gradient, const Problem& sub_pixel, const FmaCosts& costs) {
  const std::int64_t stored = gradient.output_elements() * gradient.output.element_bytes();
  return pass_price(4 * sub_pixel.output_elements() + (gradient.epilogue.residual ? 2 : 1) * stored, costs);
}

FamilyFunctions reduce_pass() { return {.name = "reduce", .emit = reduce::emit, .describe = describe}; }

}  // namespace jitconv::codegen
