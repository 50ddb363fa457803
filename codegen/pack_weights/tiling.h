// The pass that packs weights for tensor cores: where a convolution finds them afterwards, and how blocks share the
// work. The convolution decides the layout; every family whose operands are rows of 16 bytes can use it.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/problem.h"

namespace jitconv::codegen {

/// A step's taps, r * S + s with r counted within the step, in the order of their pixels' places where rows of pixels
/// are `row_pitch` places apart, and columns that differ modulo the stride are kept apart.
std::vector<int> tap_order(const Problem& problem, int filter_rows, std::int64_t row_pitch);

/// Packed weights are rows of 16 bytes, [tile of k][step][unit][k of the tile]: a step is one filter row, or all, of
/// `slices` slices of channels, a unit is a tap of one slice. A block packs `block_slices` slices of `block_channels`
/// output channels.
struct PackWeightsTiling {
  Tensor packed = Tensor::scratch;
  int tile_channels = 128;     ///< output channels of a tile
  int slices = 4;              ///< of a step
  int filter_rows = 1;         ///< of a step: 1 or R
  std::int64_t units = 0;      ///< of a step: even, the last may have no tap
  std::int64_t row_pitch = 0;  ///< of the pixels that the weights meet: see tap_order()
  int block_channels = 32;     ///< a power of two, divides tile_channels
  int block_slices = 1;

  static constexpr int kThreads = 256;
  static constexpr std::int64_t kRowBytes = 16;
  static constexpr std::int64_t kMostBytes = 48 << 10;  ///< of shared memory: several blocks of an SM can have it

  static int slice_channels(const Problem& problem) {
    return static_cast<int>(kRowBytes / problem.weight.element_bytes());
  }
  std::int64_t steps(const Problem& problem) const;
  std::int64_t tiles_k(const Problem& problem) const;
  bool has_empty_unit(const Problem& problem) const;  ///< the last of a step
  /// Slices of all steps, those beyond the last channel included.
  std::int64_t packed_slices(const Problem& problem) const;
  std::int64_t packed_bytes(const Problem& problem) const;
  /// Words of w that a block reads for each output channel, and words from one to the next in shared memory.
  std::int64_t piece_words(const Problem& problem) const;
  std::int64_t piece_pitch(const Problem& problem) const;
  std::int64_t shared_bytes(const Problem& problem) const;
  std::int64_t blocks(const Problem& problem) const;
  /// Sets the block's share.
  void choose_block(const Problem& problem);
  /// Whether a block can pack an output channel's slice at all.
  static bool fits(const Problem& problem);
  bool operator==(const PackWeightsTiling&) const = default;
};

}  // namespace jitconv::codegen
