// What the wgrad family decides: how dw is cut into tiles, and the pixels it is summed over into splits. What follows
// from a tiling and the problem is computed by its members.
#pragma once

#include <cstdint>

#include "codegen/arithmetic.h"
#include "codegen/pixel_splits.h"
#include "codegen/problem.h"

namespace jitconv::codegen {

/// fp32 FMA kernel of the weight gradient as an implicit matrix product: rows are the output channels of a group,
/// columns its input channels and taps, and the reduction runs over the pixels of all images.
struct WgradTiling {
  int block_k = 128, block_columns = 128;  ///< of dw, one block's
  int thread_k = 8, thread_columns = 8;    ///< multiples of 4
  int chunk_pixels = 16;                   ///< of one pipeline stage
  int stages = 4;
  bool async_copy = true;         ///< cp.async, else through registers
  std::int64_t split_pixels = 0;  ///< that one block sums over, a multiple of chunk_pixels
  Tensor partial_sums = Tensor::scratch;

  int threads_k() const { return block_k / thread_k; }
  int threads_columns() const { return block_columns / thread_columns; }
  int threads() const { return threads_k() * threads_columns(); }
  /// Floats from one pixel's values in shared memory to the next's.
  int pitch_k() const { return block_k + 4; }
  int pitch_columns() const { return block_columns + 4; }
  int stage_floats() const { return chunk_pixels * (pitch_k() + pitch_columns()); }
  std::int64_t shared_bytes() const { return std::int64_t{4} * stages * stage_floats(); }
  static std::int64_t columns(const Problem& problem) { return problem.c * problem.taps(); }
  static std::int64_t pixels(const Problem& problem) { return problem.n * problem.output_plane(); }
  std::int64_t tiles_k(const Problem& problem) const { return ceil_div(problem.k, block_k); }
  std::int64_t tiles_columns(const Problem& problem) const { return ceil_div(columns(problem), block_columns); }
  std::int64_t tiles(const Problem& problem) const {
    return problem.groups * tiles_k(problem) * tiles_columns(problem);
  }
  /// Blocks that share a tile; 1 even if there are no pixels.
  std::int64_t splits(const Problem& problem) const {
    return pixels(problem) == 0 ? 1 : ceil_div(pixels(problem), split_pixels);
  }
  PixelSplits pixel_splits(const Problem& problem) const {
    return {splits(problem), problem.groups * tiles_k(problem), tiles_columns(problem)};
  }
  void share_pixels(const Problem& problem, std::int64_t splits) {
    split_pixels = round_up(ceil_div(pixels(problem), splits), chunk_pixels);
  }
  bool operator==(const WgradTiling&) const = default;
};

}  // namespace jitconv::codegen
