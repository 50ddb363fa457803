// What the fallback family decides: how the output is cut into blocks, warps and threads, and what lies in shared
// memory. What follows from a tiling and the problem is computed by its members.
#pragma once

#include <cstdint>

#include "codegen/problem.h"

namespace jitconv::codegen {

/// Always valid: every thread reads its operands from global memory. Lanes run along what is contiguous in y.
struct FallbackTiling {
  int thread_k = 4;       ///< channels of a thread
  int thread_pixels = 1;  ///< pixels of a thread, one block apart
  bool lanes_over_channels = false;
  static constexpr int kThreads = 256;
  /// Threads along the channels of a group.
  std::int64_t tiles_k(const Problem& problem) const;
  std::int64_t blocks(const Problem& problem) const;
  bool operator==(const FallbackTiling&) const = default;
};

}  // namespace jitconv::codegen
