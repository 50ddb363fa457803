// What the depthwise family decides: how the output is cut into blocks, warps and threads, and what lies in shared
// memory. What follows from a tiling and the problem is computed by its members.
#pragma once

#include <cstdint>

#include "codegen/arithmetic.h"
#include "codegen/problem.h"

namespace jitconv::codegen {

/// Depthwise kernel. A block computes a band of rows of one input channel's outputs, or several whole planes if they
/// are small; a thread marches down thread_p rows of thread_q columns with the input rows in registers.
struct DepthwiseTiling {
  int thread_p = 8, thread_q = 4;  ///< consecutive rows and columns of a thread: all phases of a gradient's stride
  int threads_p = 2, threads_q = 128;
  int planes = 1;        ///< input planes of a block; more than 1 only if the tile is the whole plane
  int input_pitch = 0;   ///< floats from one input row in shared memory to the next
  int column_shift = 0;  ///< input columns between the 16-byte boundary copies start at and the tile's first column
  int copy_vector = 4;   ///< elements of one copy
  int read_vector = 4;   ///< floats of an input row that a thread reads at a time
  bool async_copy = true;
  bool unroll_rows = true;  ///< all R filter rows in the body, else one row per iteration
  bool weights_in_registers = true;
  bool hide_places = false;  ///< of rows and weights, or the compiler would read them long before their use
  enum class Store : std::uint8_t { vector, flat, rows };
  Store store = Store::flat;  ///< 16-byte stores from registers; or staged: the tile as one flat run, or row by row

  int threads() const { return threads_p * threads_q * planes; }
  int tile_p() const { return thread_p * threads_p; }
  int tile_q() const { return thread_q * threads_q; }
  std::int64_t blocks(const Problem& problem) const;
  int input_rows(const Problem& problem) const;
  /// Floats of one thread's window of an input row, a multiple of read_vector, counted from column_shift before its
  /// first tap.
  int window(const Problem& problem) const;
  std::int64_t input_floats(const Problem& problem) const;
  /// Elements one instruction of a flat store writes.
  int store_vector(const Problem& problem) const;
  /// Where the staged output starts: over the input if that is no longer needed.
  std::int64_t store_first_float(const Problem& problem) const;
  std::int64_t shared_bytes(const Problem& problem) const;
  bool operator==(const DepthwiseTiling&) const = default;
};

}  // namespace jitconv::codegen
