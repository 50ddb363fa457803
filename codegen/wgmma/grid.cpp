// See grid.h.
#include "codegen/wgmma/grid.h"

#include <algorithm>
#include <numeric>

#include "codegen/arithmetic.h"

namespace jitconv::codegen {
namespace {

/// The number of residues modulo the stride, from 0 to the largest that an offset of the filter has.
int residues(const Axis& axis) {
  std::int64_t largest = 0;
  for (std::int64_t tap = 0; tap < axis.taps; ++tap) largest = std::max(largest, tap * axis.dilation % axis.stride);
  return static_cast<int>(largest + 1);
}

/// Lanes that meet in a bank, at most, when a warp stages eight channels' outputs of `bytes` for an NCHW store, a row
/// of `pitch` for each channel, which starts `late` outputs after the one before it, modulo a sector.
int bank_conflicts(int pitch, int bytes, std::int64_t late, std::int64_t sector) {
  // Lanes store pairs of outputs, 128 bytes at a time: four channels of four floats' pairs, eight of 16-bit pairs.
  const int channels = 128 / (8 * bytes);
  int most = 0;
  for (int first = 0; first < 8; first += channels) {
    std::array<int, 32> lanes{};
    for (int channel = first; channel < first + channels; ++channel)
      for (int word = 0; word < 2 * bytes; ++word) {
        const std::int64_t place = (channel * pitch - positive_modulo(-channel * late, sector)) * bytes / 4 + word;
        most = std::max(most, ++lanes[static_cast<std::size_t>(positive_modulo(place, 32))]);
      }
  }
  return most;
}

}  // namespace

std::int64_t shared_padding_pitch(std::int64_t outputs, std::int64_t extent, std::int64_t before, std::int64_t span,
                                  std::int64_t stride) {
  const std::int64_t behind = (outputs - 1) * stride + span - before - (extent - 1);
  return std::min(outputs + span / stride, std::max(outputs, ceil_div(extent + std::max(before, behind), stride)));
}

PixelGrid::PixelGrid(const Problem& problem) : problem_(&problem) {
  const Axis& columns = problem.columns;
  const bool nchw = problem.input.layout() == Layout::nchw;
  slice_channels_ = static_cast<int>(kRowBytes / problem.input.element_bytes());
  pixel_slices_ = ceil_div(problem.input_channels(), slice_channels_);
  plane_ = problem.output_plane();
  row_reach_ = columns.reach() / columns.stride;
  phases_ = residues(columns);
  row_phases_ = residues(problem.rows);
  loads_pairs_ = problem.input.element_bytes() == 2 && nchw && columns.stride == 1 && columns.input % 2 == 0 &&
                 columns.output % 2 == 0 && row_reach_ % 2 == 0;
  loads_vectors_ = !nchw && problem.c % slice_channels_ == 0;
  const std::int64_t shared =
      shared_padding_pitch(columns.output, columns.input, columns.pad, columns.reach(), columns.stride);
  pitch_ = loads_pairs_ ? round_up(shared, 2) : shared;
  sector_elements_ =
      problem.output.layout() == Layout::nhwc ? 1 : static_cast<int>(32 / problem.output.element_bytes());
  slack_ = static_cast<int>(sector_elements_ - std::gcd(plane_, std::int64_t{sector_elements_}));
  for (const int bytes : {2, 4})
    for (const bool sector_runs : {false, true})
      for (int pitch = 0; pitch < 8; ++pitch) {
        // Eight vectors more are the same banks; shifts are less than eight vectors.
        const int elements = (pitch + 8) * 16 / bytes;
        const std::int64_t late = sector_runs ? plane_ % sector_elements_ : 0;
        staging_conflicts_[bytes == 4 ? 1 : 0][sector_runs ? 1 : 0][static_cast<std::size_t>(pitch)] =
            static_cast<std::uint8_t>(bank_conflicts(elements, bytes, late, sector_elements_));
      }
}

int PixelGrid::phase_of(std::int64_t s) const {
  return static_cast<int>(s * problem_->columns.dilation % problem_->columns.stride);
}

std::int64_t PixelGrid::tap_place(int tap) const {
  const Axis& columns = problem_->columns;
  const std::int64_t r = tap / columns.taps, s = tap % columns.taps;
  return r * problem_->rows.dilation * pitch_ + s * columns.dilation / columns.stride;
}

}  // namespace jitconv::codegen
