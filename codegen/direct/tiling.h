// What the direct family decides: how the output is cut into blocks, warps and threads, and what lies in shared memory.
// What follows from a tiling and the problem is computed by its members.
#pragma once

#include <cstdint>

#include "codegen/arithmetic.h"
#include "codegen/problem.h"

namespace jitconv::codegen {

/// Dense fp32 FMA kernel. A warp computes warp_p x warp_q pixels of thread_k channels: its lanes run over pixels and
/// share the channels, so a weight read is one broadcast. A block is warps_k x warps_p x warps_q warps.
struct DirectTiling {
  int thread_k = 8, thread_p = 2, thread_q = 4;  ///< outputs of a thread: channels, rows (lanes_p apart), columns
  int lanes_p = 1, lanes_q = 32;                 ///< lanes_p * lanes_q = 32
  int warps_k = 8, warps_p = 1, warps_q = 1;
  int chunk_c = 4;          ///< input channels of one pipeline stage
  int stages = 2;           ///< pipeline depth
  int copy_vector = 1;      ///< input elements of one copy (NCHW)
  int column_shift = 0;     ///< input columns between the boundary copies start at and the tile's first column
  int input_pitch = 0;      ///< floats from one input row in shared memory to the next
  int weight_pitch = 0;     ///< floats from one tap's channels to the next tap's
  int unroll_c = 1;         ///< channels per iteration of the inner loop
  bool unroll_rows = true;  ///< all R filter rows in the loop body, else one row per iteration
  bool async_copy = true;   ///< cp.async, else through registers
  int store_channels = 2;   ///< channels a warp stages in shared memory at a time; 0: straight from registers (NHWC)

  int warps() const { return warps_k * warps_p * warps_q; }
  int threads() const { return warps() * kWarpSize; }
  int warp_p() const { return thread_p * lanes_p; }
  int warp_q() const { return thread_q * lanes_q; }
  int block_k() const { return thread_k * warps_k; }
  int block_p() const { return warp_p() * warps_p; }
  int block_q() const { return warp_q() * warps_q; }
  std::int64_t blocks(const Problem& problem) const;
  int input_rows(const Problem& problem) const;
  int input_columns(const Problem& problem) const;
  /// Floats of one thread's window of an input row, a multiple of 4, counted from column_shift before its first tap.
  int window(const Problem& problem) const;
  std::int64_t input_stage_floats(const Problem& problem) const;
  std::int64_t weight_stage_floats(const Problem& problem) const;
  /// Floats one warp stages to store NCHW output.
  std::int64_t store_stage_floats() const;
  /// Channels one instruction writes to NHWC output.
  int store_vector(const Problem& problem) const;
  std::int64_t shared_bytes(const Problem& problem) const;
  bool operator==(const DirectTiling&) const = default;
};

}  // namespace jitconv::codegen
