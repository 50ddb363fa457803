// What follows from a tiling of the fallback family and the problem.
#include "codegen/fallback/tiling.h"

#include <algorithm>

#include "codegen/arithmetic.h"

namespace jitconv::codegen {

std::int64_t FallbackTiling::tiles_k(const Problem& problem) const { return ceil_div(problem.k, thread_k); }

std::int64_t FallbackTiling::blocks(const Problem& problem) const {
  const std::int64_t pixels = problem.n * problem.output_plane(), tiles = problem.groups * tiles_k(problem);
  return lanes_over_channels ? ceil_div(ceil_div(pixels, thread_pixels) * tiles, kThreads)
                             : ceil_div(pixels, std::int64_t{kThreads} * thread_pixels) * tiles;
}

}  // namespace jitconv::codegen
