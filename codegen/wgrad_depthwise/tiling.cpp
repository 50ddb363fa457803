// What follows from a tiling of the wgrad_depthwise family and the problem.
#include "codegen/wgrad_depthwise/tiling.h"

namespace jitconv::codegen {

std::int64_t WgradDepthwiseTiling::window(const Problem& problem) const {
  const std::int64_t met = column_shift + (thread_q - 1) * problem.columns.stride + problem.columns.reach() + 1;
  return problem.input.layout() == Layout::nchw ? round_up(met, read_vector(problem)) : met;
}

std::int64_t WgradDepthwiseTiling::x_columns(const Problem& problem) const {
  const std::int64_t met = (tile_q() - thread_q) * problem.columns.stride + window(problem);
  return problem.input.layout() == Layout::nchw ? round_up(met, std::max(x_vector, read_vector(problem))) : met;
}

int WgradDepthwiseTiling::sums(const Problem& problem) const {
  return static_cast<int>(tile_r * problem.columns.taps) + (problem.epilogue.bias ? 1 : 0);
}

std::int64_t WgradDepthwiseTiling::shared_bytes(const Problem& problem) const {
  const std::int64_t pipeline = problem.input.element_bytes() * stages * stage_elements(problem);
  // At the end, the sums of warps, or those of every thread where lanes are channels.
  const std::int64_t summed = block_k == 1 ? threads() / kWarpSize : working_threads();
  return std::max(pipeline, 4 * summed * sums(problem));
}

}  // namespace jitconv::codegen
