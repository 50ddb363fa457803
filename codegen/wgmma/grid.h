// The grid of positions that a convolution of the wgmma family computes: what follows from the problem alone, worked
// out once. Rows of the grid are longer than rows of the output, so that the padding behind one row is the padding
// before the next, and a tap is a constant distance between positions.
#pragma once

#include <array>
#include <cstdint>

#include "codegen/problem.h"

namespace jitconv::codegen {

class PixelGrid {
 public:
  /// `problem` must outlive the grid.
  explicit PixelGrid(const Problem& problem);

  const Problem& problem() const { return *problem_; }

  /// Bytes of a row of a matrix operand's half: of a slice of a pixel, of a unit of an output channel.
  static constexpr std::int64_t kRowBytes = 16;
  static constexpr std::int64_t kBehindPlane = 1024;  ///< outputs, or positions, of a last tile that do not exist

  int slice_channels() const { return slice_channels_; }       ///< 16 bytes of channels
  std::int64_t pixel_slices() const { return pixel_slices_; }  ///< of a pixel, of all groups
  std::int64_t plane() const { return plane_; }                ///< outputs of a channel of an image
  std::int64_t pitch() const { return pitch_; }                ///< positions from a row of the grid to the next
  std::int64_t row_padding() const {
    return pitch_ - problem_->columns.output;
  }  ///< positions of a row that no output has
  /// Positions that taps of a filter row reach behind their output's.
  std::int64_t row_reach() const { return row_reach_; }
  /// Residues of columns, or rows, of the input modulo the stride that taps have: pixels that are equal in this are
  /// neighbours in shared memory.
  int phases() const { return phases_; }
  int row_phases() const { return row_phases_; }
  int phase_of(std::int64_t s) const;  ///< of a filter column
  /// Whether 16-bit pixels are loaded two at a time: rows of x and of the grid are even and words aligned.
  bool loads_pairs() const { return loads_pairs_; }
  /// Whether lanes can load a pixel of each phase at a time: x is NCHW with a stride of 2 and even rows, and behind an
  /// odd padding the pixel that follows a row's last position lies outside of x.
  bool has_phase_pairs() const { return has_phase_pairs_; }
  /// Whether a lane loads 16 bytes of a pixel's channels at a time, which are contiguous.
  bool loads_vectors() const { return load_bytes_ > 0; }
  /// Bytes of its loads: 16, or fewer where channels are no whole slices and pixels start between.
  int load_bytes() const { return load_bytes_; }
  /// Whether the input is a tensor of operand rows that a kernel before the convolution made.
  bool reads_operand_rows() const { return problem_->input.is_operand_rows; }

  /// Phases that the channels of a tile can be of, if the pixels of a strided data gradient are stored: all phases, or
  /// those of rows where phases of columns are innermost. And the channels of a group that are of one such phase.
  std::int64_t tile_phases() const;
  std::int64_t tile_phase_channels() const { return problem_->k / tile_phases(); }
  /// Whether channels of such a phase meet a tap of the window.
  bool meets_tap(std::int64_t tile_phase, std::int64_t r, std::int64_t s) const;
  std::int64_t met_taps() const { return met_taps_; }            ///< of all such phases
  std::int64_t most_met_taps() const { return most_met_taps_; }  ///< of one

  /// Outputs of a channel that share 32 bytes of y: one, where other channels lie between them.
  int sector_elements() const { return sector_elements_; }
  /// Outputs after its window that a run computes, because the runs of some channels start late.
  int alignment_outputs() const { return alignment_outputs_; }
  /// The pitch, in vectors of 16 bytes and at least `vectors`, of the rows in which a warp stages outputs of
  /// `staged_bytes` for an NCHW store with the fewest bank conflicts. Where runs start at sectors of y, the channels'
  /// rows are shifted.
  int staging_pitch_vectors(int staged_bytes, bool sector_runs, int vectors) const {
    return vectors + more_vectors_[place(staged_bytes, sector_runs)][static_cast<std::size_t>(vectors % 8)];
  }
  /// Rows of y that end inside a run of `window` outputs and go on behind a gap, at most.
  int row_ends(std::int64_t window) const;
  /// Rows from one image of a run to the next, if a step has so many filter rows.
  std::int64_t image_rows(int filter_rows) const;
  /// Channels of y in a row of 128 bytes, and such rows of a position that a consumer stages.
  int box_row_channels() const { return static_cast<int>(128 / element_bytes(problem_->output.type)); }
  int box_rows() const { return 64 / box_row_channels(); }
  /// Whether positions of the grid are outputs, one after the other, so that a box goes on where a row ends.
  bool boxes_cross_rows() const { return row_padding() == 0; }

 private:
  void count_met_taps();

  const Problem* problem_;
  int slice_channels_, phases_, row_phases_, sector_elements_, alignment_outputs_;
  bool loads_pairs_, has_phase_pairs_;
  int load_bytes_;
  std::int64_t pixel_slices_, plane_, row_reach_, pitch_, met_taps_ = 0, most_met_taps_ = 0;
  static constexpr std::size_t place(int staged_bytes, bool sector_runs) {
    return (staged_bytes == 4 ? 2U : 0U) + (sector_runs ? 1U : 0U);
  }
  std::array<std::array<std::uint8_t, 8>, 4> more_vectors_{};  // by place(), and vectors modulo 8
};

/// Positions from one row (or image) of a grid to the next, of `outputs` whose last tap lies `span` pixels behind the
/// first: the padding behind one is the padding before the next. `extent` pixels, `before` of padding.
std::int64_t shared_padding_pitch(std::int64_t outputs, std::int64_t extent, std::int64_t before, std::int64_t span,
                                  std::int64_t stride);

}  // namespace jitconv::codegen
