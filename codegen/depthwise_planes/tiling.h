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
  int planes = 8;          ///< of a block: their bytes are multiples of kCopyBytes, in x and in y
  int thread_p = 7;        ///< consecutive rows of a thread: of a gradient with a stride, all phases of some rows
  int read_vector = 1;     ///< elements of a row that a thread reads at a time
  int store_vector = 1;    ///< elements of a row that it writes to shared memory at a time
  bool async_copy = true;  ///< x comes by cp.async, else through registers
  /// Weights come to shared memory first, as one run of w; else a thread loads its own. For gradients with a stride,
  /// where several threads have a plane; of the others this has not been measured.
  bool share_weights = false;
  bool store_pairs = false;  ///< 16-bit outputs are rounded by the instruction for two

  int threads_p(const Problem& problem) const { return static_cast<int>(ceil_div(problem.rows.output, thread_p)); }
  int threads(const Problem& problem) const { return planes * threads_p(problem); }
  /// Rows of x from the first that a thread's first output row meets to the last that its last does.
  std::int64_t read_rows(const Problem& problem) const { return problem.rows.inputs_met(thread_p); }
  /// Shared memory: planes of x, and in their place planes of y; behind them weights as floats, if they are shared.
  std::int64_t weights_first_byte(const Problem& problem) const {
    return planes * std::max(problem.input_plane() * problem.input.element_bytes(),
                             problem.output_plane() * problem.output.element_bytes());
  }
  std::int64_t shared_bytes(const Problem& problem) const {
    return weights_first_byte(problem) + (share_weights ? 4 * planes * problem.taps() : 0);
  }
  std::int64_t blocks(const Problem& problem) const { return ceil_div(problem.n * problem.input_channels(), planes); }
  bool operator==(const DepthwisePlanesTiling&) const = default;
};

}  // namespace jitconv::codegen
