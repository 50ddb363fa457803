// The depthwise_nhwc family: fp32 FMA for one input channel per group, NHWC, every type.
#include "codegen/depthwise_nhwc/family.h"

#include "codegen/arithmetic.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

/// Elements by which tiles reach past the ends of x: addresses that are formed, not accessed.
Overhang overhang(const DepthwiseNhwcTiling& tiling, const Problem& problem) {
  const std::int64_t rows = tiling.input_rows(problem) * problem.rows.dilation + problem.rows.pad +
                            tiling.tile_p() * problem.rows.dilation_residues() * problem.rows.stride;
  const std::int64_t columns = tiling.input_columns(problem) * problem.columns.dilation + problem.columns.pad +
                               tiling.tile_q() * problem.columns.dilation_residues() * problem.columns.stride;
  return {(rows * problem.columns.input + columns) * problem.input_channels() + tiling.block_c(problem),
          tiling.block_k() * problem.taps()};
}

bool wide_index(const Problem& problem, const Tiling& tiling) {
  return needs_wide_index(problem, overhang(std::get<DepthwiseNhwcTiling>(tiling), problem));
}

std::string describe(const KernelPlan& kernel) {
  const auto& t = std::get<DepthwiseNhwcTiling>(kernel.tiling);
  return fmt::format(
      "outputs of a thread: {} channel(s), {} rows, {} columns\n"
      "tile of a block: {} channel(s), {} rows, {} columns\n"
      "copies: {} element(s), {}, pixels {} elements apart\n"
      "body: {}\n"
      "store: {} channel(s) of a pixel{}\n",
      t.vector, t.thread_p, t.thread_q, t.block_k(), t.tile_p(), t.tile_q(), t.copy_vector,
      t.async_copy ? "cp.async" : "through registers", t.pixel_pitch,
      t.unroll_rows ? "all filter rows" : "one filter row", t.vector, t.store_pairs ? ", rounded in pairs" : "");
}

std::int64_t multiply_adds(const KernelPlan& kernel) {
  const auto& t = std::get<DepthwiseNhwcTiling>(kernel.tiling);
  return std::int64_t{kernel.launch.blocks} * t.tile_p() * t.tile_q() * t.block_k() * kernel.problem.taps();
}

}  // namespace

FamilyFunctions depthwise_nhwc_family() {
  return {
      .name = "depthwise_nhwc",
      .enumerate = depthwise_nhwc::enumerate,
      .needs_wide_index = wide_index,
      .emit = depthwise_nhwc::emit,
      .describe = describe,
      .multiply_adds = multiply_adds,
  };
}

}  // namespace jitconv::codegen
