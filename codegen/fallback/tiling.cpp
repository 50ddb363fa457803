// What follows from a tiling of the fallback family and the problem.
#include "codegen/fallback/tiling.h"

#include <algorithm>

#include "codegen/arithmetic.h"

namespace jitconv::codegen {

std::int64_t FallbackTiling::tiles_k(const Problem& problem) const { return ceil_div(problem.k, thread_k); }

}  // namespace jitconv::codegen
