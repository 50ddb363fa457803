// The pass that packs weights for tensor cores: where a convolution finds them afterwards, and how blocks share the
// work. The convolution decides the layout; every family whose operands are rows of 16 bytes can use it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "codegen/problem.h"

namespace jitconv::codegen {

/// Filter columns of which one multiplication takes `folded` neighbours, each by a group of its rows: a tap of such
/// multiplications is the first of its columns. Of a row that has columns left over, the last taps share columns, so
/// that no tap meets a pixel which the filter does not.
struct ColumnFold {
  std::int64_t columns = 1;
  int folded = 1;

  std::int64_t taps() const { return (columns + folded - 1) / folded; }                 ///< of a filter row
  std::int64_t last_column() const { return columns > folded ? columns - folded : 0; }  ///< of the last tap, its first
  std::int64_t first_column(std::int64_t tap) const { return std::min(tap * folded, last_column()); }
  /// Groups of rows that have a column; the others are zero.
  std::int64_t groups() const { return std::min<std::int64_t>(columns, folded); }
  /// Columns that the last two taps have both, from last_column() on.
  std::int64_t shared_columns() const { return taps() > 1 ? taps() * folded - columns : 0; }
  bool operator==(const ColumnFold&) const = default;
};

/// A step's taps, r * taps + t with r counted within the step, in the order of their pixels' places where rows of
/// pixels are `row_pitch` places apart, and columns that differ modulo the stride are kept apart.
std::vector<int> tap_order(const Problem& problem, int filter_rows, std::int64_t row_pitch, int folded_columns);

/// Packed weights are rows of 16 bytes, [tile of k][step][part][unit][k of the tile]: a step is one filter row, or all,
/// of `slices` slices of channels, a unit is a tap of one slice. A block packs `block_slices` slices of
/// `block_channels` output channels; of a sub-pixel convolution those are channels of dx, each with its rows of every
/// phase. If filter columns are folded, each output channel has `folded_columns` rows of a unit.
struct PackWeightsTiling {
  Tensor packed = Tensor::scratch;
  int tile_channels = 128;     ///< output channels of a tile
  int slices = 4;              ///< of a step
  int filter_rows = 1;         ///< of a step: 1 or R
  std::int64_t units = 0;      ///< of a step: even, the last may have no tap
  std::int64_t row_pitch = 0;  ///< of the pixels that the weights meet: see tap_order()
  int folded_columns = 1;      ///< that a unit has: see ColumnFold
  int parts = 1;               ///< TF32 numbers that a weight is split into: 1 or 2
  bool f16_pairs = false;      ///< weights are pairs of fp16 numbers, in the place of floats: f16_pairs.h
  /// Rows of taps that a phase of a sub-pixel convolution does not meet are not written: nothing reads them.
  bool leaves_zero_taps = false;
  int block_channels = 32;  ///< a power of two that divides tile_channels, or all channels of a phase
  int block_slices = 1;

  static constexpr int kThreads = 256;
  static constexpr std::int64_t kRowBytes = 16;
  static constexpr std::int64_t kMostBytes = 48 << 10;  ///< of shared memory: several blocks of an SM can have it

  /// Whether w is that of a data gradient: channels are exchanged, so that output channels are neighbours in it.
  static bool reads_gradient(const Problem& problem) { return source(problem).stride.w < 0 && !joins_groups(problem); }
  /// Whether threads read w where it lies, because rows have zeros between groups of it: join_groups().
  static bool joins_groups(const Problem& problem) { return problem.joined_groups > 1; }
  /// w as it was asked for, also where the problem has dense weights in its place.
  static const View& source(const Problem& problem) {
    return problem.asked_weight ? *problem.asked_weight : problem.weight;
  }
  static int slice_channels(const Problem& problem) {
    return static_cast<int>(kRowBytes / problem.weight.element_bytes());
  }
  /// Rows of neighbouring channels that a block makes together, and counts as one slice: one, or one of each part of
  /// pairs.
  int item_rows() const { return f16_pairs ? 2 : 1; }
  /// What is known of the range of pairs begins with this row: f16_pairs.h.
  std::int64_t range_row(const Problem& problem) const;
  /// Elements of w.
  static std::int64_t source_elements(const Problem& problem);
  ColumnFold fold(const Problem& problem) const { return {problem.columns.taps, folded_columns}; }
  std::int64_t steps(const Problem& problem) const;
  std::int64_t tiles_k(const Problem& problem) const;
  bool has_empty_unit(const Problem& problem) const;  ///< the last of a step
  /// Slices of all steps that a block counts, those beyond the last channel included.
  std::int64_t packed_slices(const Problem& problem) const;
  std::int64_t packed_bytes(const Problem& problem) const;
  /// A block reads pieces of w: words of each, and words from one to the next in shared memory. There is one for each
  /// output channel, or, of a data gradient, for each channel of dy.
  std::int64_t piece_words(const Problem& problem) const;
  std::int64_t piece_pitch(const Problem& problem) const;
  std::int64_t pieces(const Problem& problem) const;
  /// Elements that a load of a piece brings; for data gradients.
  int load_elements(const Problem& problem) const;
  /// Whether 16 bytes are left free behind every 128 bytes of a piece; for data gradients. Filters that lie an even
  /// number of words apart would have bank conflicts without that.
  static bool skews_pieces(const Problem& problem);
  /// Rows of a unit that a block writes of a phase: of its channels, and of all phases of columns if those are
  /// innermost.
  std::int64_t block_rows(const Problem& problem) const;
  /// Phases of a sub-pixel convolution whose rows blocks write. The rows behind the last one's, up to the end of a
  /// tile, count as those of more phases, which meet no tap.
  std::int64_t packed_phases(const Problem& problem) const;
  /// Whether a block has all channels of a phase, so that it writes all rows of a unit.
  bool has_whole_phases(const Problem& problem) const { return block_channels == problem.k / problem.phases.count(); }
  /// Rows of a slice that a block makes of an output channel, each once for every folded column.
  std::int64_t slice_rows(const Problem& problem) const;
  /// Neighbouring threads that write neighbouring rows of a unit, of all phases; others write other units meanwhile, if
  /// there are any.
  std::int64_t lanes(const Problem& problem) const;
  bool lanes_are_all_threads(const Problem& problem) const { return lanes(problem) == kThreads; }
  std::int64_t shared_bytes(const Problem& problem) const;
  std::int64_t blocks(const Problem& problem) const;
  std::int64_t blocks_of_group(const Problem& problem) const;  ///< that have other output channels
  /// Sets the block's share.
  void choose_block(const Problem& problem);
  /// Why a block cannot even pack an output channel's slice; empty if it can.
  static std::string obstacle(const Problem& problem);
  bool operator==(const PackWeightsTiling&) const = default;
};

}  // namespace jitconv::codegen
