// What the wgrad_depthwise family decides: which pixels a block and a thread sum over, and what lies in shared memory.
// What follows from a tiling and the problem is computed by its members.
#pragma once

#include <algorithm>
#include <cstdint>

#include "codegen/arithmetic.h"
#include "codegen/pixel_splits.h"
#include "codegen/problem.h"

namespace jitconv::codegen {

/// fp32 FMA kernel of the weight gradient with one input channel per group. A thread keeps the sums of all taps of one
/// output channel in registers and walks down a strip of dy: strip_rows rows of thread_q columns. Of x it reads every
/// row once, of dy it keeps the rows that the filter still reaches.
///
/// Rows are counted in steps of the dilation: output rows that are row_phases() apart meet rows of x that are
/// `dilation` apart, so each residue of them is a convolution of its own, without dilation and with stride
/// row_stride().
struct WgradDepthwiseTiling {
  int block_c = 1;  ///< input channels of a block; more than 1 only in NHWC, where lanes run along channels
  int block_k = 1;  ///< output channels of a block, all of its input channels' if there are more than 1
  int tile_r = 3;   ///< filter rows of a block
  int thread_q = 4, threads_q = 128;  ///< columns of a thread, threads along a row
  int slots = 1;                      ///< strips that a block walks at the same time
  int strip_rows = 64;                ///< of dy
  int turns = 1;                      ///< strips that a slot walks, one after the other
  int periods = 1;                    ///< of step_rows() input rows, in one stage of the pipeline
  int stages = 4;
  int x_vector = 4, dy_vector = 4;  ///< elements of one copy
  int column_shift = 0;             ///< input columns between the first that is copied and the first tap's
  bool async_copy = true;           ///< cp.async, else through registers
  /// Copies of a step are so few that where each one goes stays in registers; else that is computed at every step.
  bool unroll_copies = true;
  Tensor partial_sums = Tensor::scratch;

  int working_threads() const { return slots * threads_q * block_k; }
  int threads() const { return static_cast<int>(round_up(working_threads(), kWarpSize)); }
  int tile_q() const { return thread_q * threads_q; }
  /// Elements that a thread reads at a time from rows of columns.
  int read_vector(const Problem& problem) const {
    return std::min(thread_q, static_cast<int>(16 / problem.input.element_bytes()));
  }
  /// Rows of dy that one row of x meets, and hence that a thread keeps.
  int live_rows(const Problem& problem) const { return static_cast<int>((tile_r - 1) / row_stride(problem)) + 1; }
  /// Rows of x after which a thread's registers hold rows of dy in the same order again.
  int period_rows(const Problem& problem) const { return static_cast<int>(live_rows(problem) * row_stride(problem)); }
  int stage_x_rows(const Problem& problem) const { return periods * period_rows(problem); }
  int stage_dy_rows(const Problem& problem) const { return periods * live_rows(problem); }
  /// Rows of x that a strip meets.
  std::int64_t strip_x_rows(const Problem& problem) const { return (strip_rows - 1) * row_stride(problem) + tile_r; }
  std::int64_t strip_steps(const Problem& problem) const {
    return ceil_div(strip_x_rows(problem), stage_x_rows(problem));
  }
  /// Columns of x that one thread meets in a row, and those of a row in shared memory, from column_shift before.
  std::int64_t window(const Problem& problem) const;
  std::int64_t x_columns(const Problem& problem) const;
  std::int64_t x_pitch(const Problem& problem) const { return x_columns(problem) * block_c; }
  std::int64_t dy_pitch() const { return std::int64_t{tile_q()} * block_k; }
  /// Elements of one stage: x [slot][row][column][channel], then dy alike from x_elements().
  std::int64_t x_elements(const Problem& problem) const {
    return round_up(slots * stage_x_rows(problem) * x_pitch(problem), 8);
  }
  std::int64_t stage_elements(const Problem& problem) const {
    return x_elements(problem) + round_up(slots * stage_dy_rows(problem) * dy_pitch(), 8);
  }
  /// Copies of x and of dy that a thread makes for one stage.
  std::int64_t x_copies(const Problem& problem) const {
    return ceil_div(slots * stage_x_rows(problem) * (x_pitch(problem) / x_vector), threads());
  }
  std::int64_t dy_copies(const Problem& problem) const {
    return ceil_div(slots * stage_dy_rows(problem) * (dy_pitch() / dy_vector), threads());
  }
  /// Sums of one thread: taps, and that of db.
  int sums(const Problem& problem) const;
  std::int64_t shared_bytes(const Problem& problem) const;

  static std::int64_t row_phases(const Problem& problem) { return problem.rows.dilation_residues(); }
  static std::int64_t row_stride(const Problem& problem) { return problem.rows.undilated_stride(); }
  std::int64_t tiles_r(const Problem& problem) const { return ceil_div(problem.rows.taps, tile_r); }
  std::int64_t tiles_k(const Problem& problem) const { return ceil_div(problem.output_channels(), block_k); }
  std::int64_t tiles_q(const Problem& problem) const { return ceil_div(problem.columns.output, tile_q()); }
  /// Strips of a phase of rows.
  std::int64_t bands(const Problem& problem) const {
    return ceil_div(ceil_div(problem.rows.output, row_phases(problem)), strip_rows);
  }
  std::int64_t strips(const Problem& problem) const {
    return problem.n * row_phases(problem) * bands(problem) * tiles_q(problem);
  }
  /// Blocks that share a filter row; 1 even if there are no pixels.
  std::int64_t splits(const Problem& problem) const {
    return std::max<std::int64_t>(1, ceil_div(strips(problem), std::int64_t{slots} * turns));
  }
  PixelSplits pixel_splits(const Problem& problem) const {
    return {splits(problem), tiles_k(problem), tiles_r(problem), {.columns = true}};
  }
  void share_pixels(const Problem& problem, std::int64_t splits) {
    turns = static_cast<int>(ceil_div(ceil_div(strips(problem), slots), splits));
  }
  bool operator==(const WgradDepthwiseTiling&) const = default;
};

}  // namespace jitconv::codegen
