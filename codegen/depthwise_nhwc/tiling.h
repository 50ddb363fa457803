// What the depthwise_nhwc family decides: how the output is cut into blocks and threads, and what lies in shared
// memory. What follows from a tiling and the problem is computed by its members.
#pragma once

#include <cstdint>

#include "codegen/arithmetic.h"
#include "codegen/problem.h"

namespace jitconv::codegen {

/// Depthwise kernel for tensors whose channels are neighbours. A thread computes thread_p x thread_q pixels of `vector`
/// output channels; the lanes of a warp run along channels first.
///
/// Rows and columns of a block are dilation_residues() apart, so that the rows and columns of x that they meet are
/// `dilation` apart. Shared memory has those alone: there the convolution has no dilation, and undilated_stride().
struct DepthwiseNhwcTiling {
  int vector = 4;  ///< output channels of a thread; 1 if a group has several
  int thread_p = 2, thread_q = 4;
  int threads_c = 16, threads_p = 4, threads_q = 4;
  int copy_vector = 4;       ///< elements of one copy
  int pixel_pitch = 64;      ///< elements from one pixel in shared memory to the next
  bool async_copy = true;    ///< cp.async, else through registers
  bool unroll_rows = true;   ///< all R filter rows in the body, else one row per iteration
  bool store_pairs = false;  ///< 16-bit outputs are rounded two at a time

  int threads() const { return threads_c * threads_p * threads_q; }
  int tile_p() const { return thread_p * threads_p; }
  int tile_q() const { return thread_q * threads_q; }
  int block_k() const { return threads_c * vector; }
  int block_c(const Problem& problem) const { return static_cast<int>(block_k() / problem.k); }
  /// Columns of x that one thread meets in a row.
  std::int64_t window(const Problem& problem) const {
    return (thread_q - 1) * problem.columns.undilated_stride() + problem.columns.taps;
  }
  std::int64_t input_rows(const Problem& problem) const {
    return (tile_p() - 1) * problem.rows.undilated_stride() + problem.rows.taps;
  }
  std::int64_t input_columns(const Problem& problem) const {
    return (tile_q() - 1) * problem.columns.undilated_stride() + problem.columns.taps;
  }
  std::int64_t tiles_c(const Problem& problem) const { return ceil_div(problem.output_channels(), block_k()); }
  /// Tiles of one residue of rows, or columns.
  std::int64_t tiles_p(const Problem& problem) const {
    return ceil_div(ceil_div(problem.rows.output, problem.rows.dilation_residues()), tile_p());
  }
  std::int64_t tiles_q(const Problem& problem) const {
    return ceil_div(ceil_div(problem.columns.output, problem.columns.dilation_residues()), tile_q());
  }
  std::int64_t blocks(const Problem& problem) const {
    return problem.n * problem.rows.dilation_residues() * tiles_p(problem) * problem.columns.dilation_residues() *
           tiles_q(problem) * tiles_c(problem);
  }
  /// Floats from the weights of one tap to those of the next: a vector more than they are, against bank conflicts.
  int weight_pitch() const { return block_k() + vector; }
  /// Elements of the input tile, [h][w][channel], behind which the weights lie.
  std::int64_t input_elements(const Problem& problem) const {
    return round_up(input_rows(problem) * input_columns(problem) * pixel_pitch, 32 / problem.input.element_bytes());
  }
  std::int64_t shared_bytes(const Problem& problem) const {
    return input_elements(problem) * problem.input.element_bytes() + problem.taps() * weight_pitch() * 4;
  }
  bool operator==(const DepthwiseNhwcTiling&) const = default;
};

}  // namespace jitconv::codegen
