// The wgrad_depthwise family: fp32 FMA for the gradient of weights with one input channel per group, every type. Shares
// of the pixels are added by reduce/.
#include "codegen/wgrad_depthwise/family.h"

#include "codegen/reduce/pass.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

void add_passes(ConvPlan& plan) {
  KernelPlan& kernel = plan.convolution();
  auto& tiling = std::get<WgradDepthwiseTiling>(kernel.tiling);
  tiling.partial_sums = scratch_tensor(plan.scratch.size());
  add_gradient_reduction(plan, kernel.problem, tiling.splits(kernel.problem), sums_as_dw(kernel.problem));
}

std::string describe(const KernelPlan& kernel) {
  const auto& t = std::get<WgradDepthwiseTiling>(kernel.tiling);
  const Problem& problem = kernel.problem;
  return fmt::format(
      "sums of a thread: {} filter row(s) of {} tap(s), over {} columns\n"
      "block: {} output channel(s), {} strip(s) of {} rows and {} columns at a time, {} time(s)\n"
      "pipeline: {} stages of {} input rows, copies of {} and {} element(s), {}\n"
      "split-K: {} blocks, partial sums added by another kernel\n",
      t.tile_r, problem.columns.taps, t.thread_q, t.block_k, t.slots, t.strip_rows, t.tile_q(), t.turns, t.stages,
      t.stage_x_rows(problem), t.x_vector, t.dy_vector, t.async_copy ? "cp.async" : "through registers",
      t.splits(problem));
}

std::int64_t multiply_adds(const KernelPlan& kernel) {
  const auto& t = std::get<WgradDepthwiseTiling>(kernel.tiling);
  const Problem& problem = kernel.problem;
  const std::int64_t rows = t.turns * t.strip_steps(problem) * t.stage_dy_rows(problem);
  return std::int64_t{kernel.launch.blocks} * t.working_threads() * t.thread_q * rows * t.tile_r * problem.columns.taps;
}

/// Strips behind the last image, rows and columns beyond the edges and channels beyond the last form addresses.
bool needs_wide(const Problem& problem, const Tiling& tiling) {
  const auto& t = std::get<WgradDepthwiseTiling>(tiling);
  const std::int64_t strips_of_image = t.strips(problem) / std::max<std::int64_t>(1, problem.n);
  const std::int64_t images = 2 + ceil_div(std::int64_t{t.slots} * t.turns, std::max<std::int64_t>(1, strips_of_image));
  const auto far = [&](const View& view, std::int64_t channels, std::int64_t rows, std::int64_t columns) {
    return (problem.n + images) * view.stride.n + channels * view.stride.c + rows * view.stride.h +
           columns * view.stride.w;
  };
  const std::int64_t strip_rows = (t.strip_steps(problem) + 1) * t.stage_x_rows(problem) + problem.rows.taps;
  const std::int64_t x_rows = problem.rows.output * problem.rows.stride + problem.rows.pad +
                              (strip_rows + t.strip_rows) * problem.rows.dilation * problem.rows.stride;
  const std::int64_t x_columns =
      problem.columns.output * problem.columns.stride + problem.columns.pad + 2 * t.x_columns(problem) + t.column_shift;
  const std::int64_t dy_rows =
      problem.rows.output + (strip_rows + t.strip_rows) * WgradDepthwiseTiling::row_phases(problem);
  const std::int64_t channels = t.block_k + problem.output_channels();
  return std::max(far(problem.input, channels, x_rows, x_columns),
                  far(problem.output, channels, dy_rows, problem.columns.output + t.tile_q())) > INT32_MAX;
}

}  // namespace

FamilyFunctions wgrad_depthwise_family() {
  return {
      .name = "wgrad_depthwise",
      .reads_any_weight = true,
      .enumerate = wgrad_depthwise::enumerate,
      .add_passes = add_passes,
      .needs_wide_index = needs_wide,
      .emit = wgrad_depthwise::emit,
      .describe = describe,
      .multiply_adds = multiply_adds,
  };
}

}  // namespace jitconv::codegen
