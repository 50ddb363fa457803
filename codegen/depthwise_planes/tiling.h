// What the depthwise_planes family decides: how many planes a block takes, how many rows of them a thread, and how a
// thread reads and writes shared memory. What follows from a tiling and the problem is computed by its members.
#pragma once

#include <algorithm>
#include <cstdint>

#include "codegen/arithmetic.h"
#include "codegen/problem.h"

namespace jitconv::codegen {

/// Depthwise kernel for small planes of NCHW tensors. A block takes whole planes, which are one run of x and one run of
/// y; a thread computes `thread_p` whole rows of one plane, so that the borders of its columns are known.
struct DepthwisePlanesTiling {
  static constexpr std::int64_t kCopyBytes = 16;  ///< that a thread moves between memory and shared memory at a time
  int planes = 8;            ///< of a block: their bytes are multiples of kCopyBytes, in x and in y
  int thread_p = 7;          ///< consecutive rows of a thread
  int read_vector = 1;       ///< elements of a row that a thread reads at a time
  int store_vector = 1;      ///< elements of a row that it writes to shared memory at a time
  bool async_copy = true;    ///< x comes by cp.async, else through registers
  bool store_pairs = false;  ///< 16-bit outputs are rounded by the instruction for two

  int threads_p(const Problem& problem) const { return static_cast<int>(ceil_div(problem.rows.output, thread_p)); }
  int threads(const Problem& problem) const { return planes * threads_p(problem); }
  /// Rows of x from the first that a thread's first output row meets to the last that its last does.
  std::int64_t read_rows(const Problem& problem) const {
    return (thread_p - 1) * problem.rows.stride + problem.rows.reach() + 1;
  }
  /// Shared memory: planes of x, and in their place planes of y.
  std::int64_t shared_bytes(const Problem& problem) const {
    return planes * std::max(problem.input_plane() * problem.input.element_bytes(),
                             problem.output_plane() * problem.output.element_bytes());
  }
  std::int64_t blocks(const Problem& problem) const { return ceil_div(problem.n * problem.input_channels(), planes); }
  bool operator==(const DepthwisePlanesTiling&) const = default;
};

}  // namespace jitconv::codegen
