// What the depthwise_nhwc family decides: how the output is cut into blocks and threads, and what lies in shared
// memory. What follows from a tiling and the problem is computed by its members.
#pragma once

#include <cstdint>

#include "codegen/arithmetic.h"
#include "codegen/problem.h"

namespace jitconv::codegen {

/// An axis as the threads of the depthwise_nhwc family see it: outputs and inputs of one residue of the dilation, or of
/// a gradient with a stride, which has no dilation. Counted from the first of a block, output o meets tap t in input
/// (o * stride + t + phase) / upsampling, where the quotient is whole.
struct DepthwiseAxis {
  std::int64_t taps = 1, stride = 1, upsampling = 1;
  std::int64_t phase = 0;     ///< below `upsampling`
  std::int64_t residues = 1;  ///< of the dilation: from an output of a block to the next
  std::int64_t outputs = 1;   ///< of one residue
  std::int64_t first = 0;     ///< of a gradient with a stride: the first input that output 0 meets

  explicit DepthwiseAxis(const Axis& axis)
      : taps(axis.taps),
        stride(axis.undilated_stride()),
        upsampling(axis.upsampling),
        phase(positive_modulo(-axis.pad, axis.upsampling)),
        residues(axis.dilation_residues()),
        outputs(ceil_div(axis.output, residues)),
        first((-axis.pad - phase) / axis.upsampling) {}

  bool meets(std::int64_t output, std::int64_t tap) const { return (output * stride + tap + phase) % upsampling == 0; }
  std::int64_t met(std::int64_t output, std::int64_t tap) const { return (output * stride + tap + phase) / upsampling; }
  /// Inputs that the first `count` outputs meet.
  std::int64_t inputs(std::int64_t count) const { return met(count - 1, taps - 1) + 1; }
};

/// A problem with its axes, which a search works out once. Made of any problem where one number is asked for.
struct DepthwiseNhwcProblem {
  const Problem& problem;
  DepthwiseAxis rows, columns;
  DepthwiseNhwcProblem(const Problem& of) : problem(of), rows(of.rows), columns(of.columns) {}
};

/// Depthwise kernel for tensors whose channels are neighbours. A thread computes thread_p x thread_q pixels of `vector`
/// output channels; the lanes of a warp run along channels first.
struct DepthwiseNhwcTiling {
  int vector = 4;  ///< output channels of a thread; 1 if a group has several
  int thread_p = 2, thread_q = 4;
  int threads_c = 16, threads_p = 4, threads_q = 4;
  int copy_vector = 4;   ///< elements of one copy
  int pixel_pitch = 64;  ///< elements from one pixel in shared memory to the next
  enum class Copy : std::uint8_t { registers, async, box };
  Copy copy = Copy::async;   ///< how pixels come: through registers, by cp.async, or as one box of TMA
  bool unroll_rows = true;   ///< all R filter rows in the body, else one row per iteration
  bool store_pairs = false;  ///< 16-bit outputs are rounded two at a time

  int threads() const { return threads_c * threads_p * threads_q; }
  int tile_p() const { return thread_p * threads_p; }
  int tile_q() const { return thread_q * threads_q; }
  int block_k() const { return threads_c * vector; }
  int block_c(const Problem& problem) const { return static_cast<int>(block_k() / problem.k); }
  /// Channels of x that a thread reads at a time.
  int read_vector(const Problem& problem) const { return problem.k == 1 ? vector : 1; }
  /// Columns of x that one thread meets in a row.
  std::int64_t window(const DepthwiseNhwcProblem& of) const { return of.columns.inputs(thread_q); }
  std::int64_t input_rows(const DepthwiseNhwcProblem& of) const { return of.rows.inputs(tile_p()); }
  std::int64_t input_columns(const DepthwiseNhwcProblem& of) const { return of.columns.inputs(tile_q()); }
  std::int64_t input_pixels(const DepthwiseNhwcProblem& of) const { return input_rows(of) * input_columns(of); }
  std::int64_t tiles_c(const Problem& problem) const { return ceil_div(problem.output_channels(), block_k()); }
  /// Tiles of one residue of rows, or columns.
  std::int64_t tiles_p(const DepthwiseNhwcProblem& of) const { return ceil_div(of.rows.outputs, tile_p()); }
  std::int64_t tiles_q(const DepthwiseNhwcProblem& of) const { return ceil_div(of.columns.outputs, tile_q()); }
  std::int64_t blocks(const DepthwiseNhwcProblem& of) const {
    return of.problem.n * of.rows.residues * tiles_p(of) * of.columns.residues * tiles_q(of) * tiles_c(of.problem);
  }
  /// Multiply-adds of a block.
  std::int64_t multiply_adds(const Problem& problem) const {
    return std::int64_t{tile_p()} * tile_q() * block_k() * problem.taps() /
           (problem.rows.upsampling * problem.columns.upsampling);
  }
  /// Elements of w that a thread loads at a time, and how often: a block's weights are one run.
  int weight_vector(const Problem& problem) const;
  std::int64_t weight_steps(const Problem& problem) const {
    return ceil_div(problem.taps() * block_k(), std::int64_t{weight_vector(problem)} * threads());
  }
  /// Floats from the weights of one tap to those of the next: a vector more than they are, against bank conflicts.
  int weight_pitch() const { return block_k() + vector; }
  /// Shared memory: pixels [h][w][channel], weights [tap][channel], the barrier that a box arrives at.
  std::int64_t weights_first_byte(const DepthwiseNhwcProblem& of) const {
    return round_up(input_pixels(of) * pixel_pitch * of.problem.input.element_bytes(), 32);
  }
  std::int64_t barrier_first_byte(const DepthwiseNhwcProblem& of) const {
    return weights_first_byte(of) + round_up(4 * of.problem.taps() * weight_pitch(), 8);
  }
  std::int64_t shared_bytes(const DepthwiseNhwcProblem& of) const {
    return barrier_first_byte(of) + (copy == Copy::box ? 8 : 0);
  }
  bool operator==(const DepthwiseNhwcTiling&) const = default;
};

}  // namespace jitconv::codegen
