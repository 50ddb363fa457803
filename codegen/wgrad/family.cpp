// The wgrad family: fp32 FMA for the gradient of the weights, every type and layout. Splits of the pixels are added by
// reduce/.
#include "codegen/wgrad/family.h"

#include "codegen/reduce/pass.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

void add_passes(ConvPlan& plan) {
  KernelPlan& kernel = plan.convolution();
  auto& tiling = std::get<WgradTiling>(kernel.tiling);
  tiling.partial_sums = scratch_tensor(plan.scratch.size());
  add_gradient_reduction(plan, kernel.problem, tiling.splits(kernel.problem), sums_as_dw(kernel.problem));
}

std::string describe(const KernelPlan& kernel) {
  const auto& t = std::get<WgradTiling>(kernel.tiling);
  return fmt::format(
      "tile of a block: {} output channels, {} input channels and taps; of a thread: {} and {}\n"
      "pipeline: {} stages of {} pixels, {}\n"
      "split-K: {} blocks of {} pixels, partial sums added by another kernel\n",
      t.block_k, t.block_columns, t.thread_k, t.thread_columns, t.stages, t.chunk_pixels,
      t.async_copy ? "cp.async" : "copies through registers", t.splits(kernel.problem), t.split_pixels);
}

std::int64_t multiply_adds(const KernelPlan& kernel) {
  const auto& tiling = std::get<WgradTiling>(kernel.tiling);
  return tiling.tiles(kernel.problem) * tiling.block_k * tiling.block_columns * tiling.splits(kernel.problem) *
         tiling.split_pixels;
}

/// Taps outside of x form addresses before its start and behind its end.
bool needs_wide(const Problem& problem, const Tiling& tiling) {
  const auto& t = std::get<WgradTiling>(tiling);
  const auto overhang = [](const Axis& axis) {
    return std::max(axis.pad, (axis.output - 1) * axis.stride + axis.reach() - axis.pad - axis.input + 1);
  };
  const View::Strides& x = problem.input.stride;
  const std::int64_t rows = std::max<std::int64_t>(0, overhang(problem.rows)),
                     columns = std::max<std::int64_t>(0, overhang(problem.columns));
  return needs_wide_index(problem, {rows * x.h + columns * x.w + (t.block_columns + 1) * x.c + x.n,
                                    t.block_k * WgradTiling::columns(problem)}) ||
         (t.block_k + problem.output_channels()) * problem.output.stride.c + problem.output_elements() > INT32_MAX;
}

}  // namespace

FamilyFunctions wgrad_family() {
  return {
      .name = "wgrad",
      .reads_any_weight = true,
      .enumerate = wgrad::enumerate,
      .add_passes = add_passes,
      .needs_wide_index = needs_wide,
      .emit = wgrad::emit,
      .describe = describe,
      .multiply_adds = multiply_adds,
  };
}

}  // namespace jitconv::codegen
