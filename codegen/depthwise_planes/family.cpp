// The depthwise_planes family: fp32 FMA for one channel per group, small planes of NCHW tensors, every type.
#include "codegen/depthwise_planes/family.h"

#include "codegen/arithmetic.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

bool wide_index(const Problem& problem, const Tiling& tiling) {
  const auto& t = std::get<DepthwisePlanesTiling>(tiling);
  return needs_wide_index(problem, {t.planes * std::max(problem.input_plane(), problem.output_plane()), 0});
}

std::string describe(const KernelPlan& kernel) {
  const auto& t = std::get<DepthwisePlanesTiling>(kernel.tiling);
  return fmt::format(
      "outputs of a thread: {} rows, {} columns\n"
      "tile of a block: {} whole plane(s)\n"
      "copies: one run of x and one of y, 16 bytes at a time, {}\n"
      "shared memory: {} element(s) read, {} written at a time{}{}\n",
      t.thread_p, kernel.problem.columns.output, t.planes, t.async_copy ? "cp.async" : "through registers",
      t.read_vector, t.store_vector, t.store_pairs ? ", rounded in pairs" : "",
      t.share_weights ? "; a run of weights" : "");
}

std::int64_t multiply_adds(const KernelPlan& kernel) {
  const auto& t = std::get<DepthwisePlanesTiling>(kernel.tiling);
  const Problem& problem = kernel.problem;
  return std::int64_t{kernel.launch.blocks} * t.threads(problem) * t.thread_p * problem.columns.output *
         problem.taps() / problem.phases_of_stride();
}

OutputTiles output_tiles(const KernelPlan& kernel) {
  const auto& tiling = std::get<DepthwisePlanesTiling>(kernel.tiling);
  OutputTiles result;
  result.planes = tiling.planes;
  result.rows = result.columns = 0;
  result.tiles = tiling.blocks(kernel.problem);
  return result;
}

}  // namespace

FamilyFunctions depthwise_planes_family() {
  return {
      .name = "depthwise_planes",
      .reads_any_weight = true,
      .enumerate = depthwise_planes::enumerate,
      .needs_wide_index = wide_index,
      .emit = depthwise_planes::emit,
      .describe = describe,
      .multiply_adds = multiply_adds,
      .output_tiles = output_tiles,
  };
}

}  // namespace jitconv::codegen
