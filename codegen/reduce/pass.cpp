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

std::int64_t blocks_of(std::int64_t items) { return ceil_div(items, ReduceTiling::kThreads); }

/// Adds the pass to the plan, with a region of scratch for the partial sums.
void add_pass(ConvPlan& plan, const Problem& problem, ReduceTiling tiling, std::int64_t blocks) {
  tiling.partial_sums = scratch_tensor(plan.scratch.size());
  KernelPlan pass;
  pass.problem = problem;
  pass.tiling = tiling;
  pass.launch.blocks = static_cast<std::uint32_t>(blocks);
  pass.launch.threads = ReduceTiling::kThreads;
  pass.launch.shared_bytes = static_cast<std::uint32_t>(4 * tiling.block_filters * problem.taps());
  pass.starts_early = may_overlap(plan.target);
  plan.scratch.push_back({"partial_sums", 4 * tiling.split_k * tiling.sums.stride});
  plan.kernels.push_back(pass);
}

/// As many filters as shared memory has place for and as leave every SM several blocks.
int block_filters(const Problem& problem, const Target& target) {
  constexpr int kMost = 128, kOfSector = 8, kBlocksOfSm = 4;
  const std::int64_t filters = problem.weight_elements() / problem.taps();
  int result = kMost;
  while (result * problem.taps() > kMostTaps) result /= 2;
  while (result > kOfSector && filters / result < std::int64_t{kBlocksOfSm} * target.sm_count) result /= 2;
  return result;
}

}  // namespace

std::int64_t gradient_elements(const Problem& problem) {
  return problem.weight_elements() + (problem.epilogue.bias ? problem.output_channels() : 0);
}

void add_gradient_reduction(ConvPlan& plan, const Problem& asked, std::int64_t splits, const GradientSums& sums) {
  ReduceTiling tiling;
  tiling.split_k = static_cast<int>(splits);
  tiling.bias_sums = gradient_elements(asked) - asked.weight_elements();
  tiling.sums = sums;
  tiling.group_k = asked.k;
  const Problem problem = gradient_problem(asked);
  std::int64_t blocks = blocks_of(gradient_elements(asked));
  // A single tap is in the order of dw already.
  const bool is_in_order = sums.order == GradientSums::Order::tap_k_c && asked.taps() == 1 && sums.joined_groups == 1;
  if (!sums.is_as_dw() && !is_in_order) {
    tiling.block_filters = block_filters(asked, plan.target);
    blocks = tiling.filter_blocks(problem) + blocks_of(tiling.bias_sums);
  }
  add_pass(plan, problem, tiling, blocks);
}

void add_reduction(ConvPlan& plan, int split_k, std::int64_t stride, Relu relu) {
  const Problem problem = plan.convolution().problem;
  ReduceTiling tiling;
  tiling.split_k = split_k;
  tiling.sums.stride = stride;
  tiling.relu = relu;
  plan.convolution().problem.output.tensor = scratch_tensor(plan.scratch.size());
  add_pass(plan, problem, tiling, blocks_of(problem.output_elements()));
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
  pass.launch.blocks = static_cast<std::uint32_t>(blocks_of(items));
}

std::int64_t interleaving_cost(const Problem& gradient, const Problem& sub_pixel, const FmaCosts& costs) {
  const std::int64_t stored = gradient.output_elements() * gradient.output.element_bytes();
  return pass_price(4 * sub_pixel.output_elements() + (gradient.epilogue.residual ? 2 : 1) * stored, costs);
}

FamilyFunctions reduce_pass() { return {.name = "reduce", .emit = reduce::emit, .describe = describe}; }

}  // namespace jitconv::codegen
