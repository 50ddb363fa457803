// See grid.h.
#include "codegen/wgmma/grid.h"

#include <algorithm>
#include <numeric>

#include "codegen/arithmetic.h"
#include "codegen/phases.h"

namespace jitconv::codegen {
namespace {

/// The number of residues modulo the stride, from 0 to the largest that an offset of the filter has.
int residues(const Axis& axis) {
  std::int64_t largest = 0;
  for (std::int64_t tap = 0; tap < axis.taps; ++tap) largest = std::max(largest, tap * axis.dilation % axis.stride);
  return static_cast<int>(largest + 1);
}

/// Bank conflicts, lanes per bank at most, when a warp stages eight channels' outputs of `bytes` for an NCHW store, a
/// row of `pitch` for each channel, which starts `late` outputs after the one before it, modulo a sector.
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

/// How many vectors of 16 bytes to add to a pitch, by the pitch in vectors modulo 8, for the fewest bank conflicts: the
/// first of eight pitches that has them.
std::array<std::uint8_t, 8> vectors_to_fewest_conflicts(int bytes, std::int64_t late, std::int64_t sector) {
  std::array<int, 8> conflicts{};
  for (int vectors = 0; vectors < 8; ++vectors)
    // Eight vectors more are the same banks; shifts are less than eight vectors.
    conflicts[static_cast<std::size_t>(vectors)] = bank_conflicts((vectors + 8) * 16 / bytes, bytes, late, sector);
  std::array<std::uint8_t, 8> more{};
  for (std::size_t vectors = 0; vectors < 8; ++vectors)
    for (std::uint8_t i = 1; i < 8; ++i)
      if (conflicts[(vectors + i) % 8] < conflicts[(vectors + more[vectors]) % 8]) more[vectors] = i;
  return more;
}

/// The same of vectors_to_fewest_conflicts(), worked out once for all grids. `late` is less than `sector`, which is 1
/// or 32 bytes.
const std::array<std::uint8_t, 8>& more_vectors(int bytes, std::int64_t late, std::int64_t sector) {
  constexpr std::int64_t kMostSector = 16;
  using OfLate = std::array<std::array<std::uint8_t, 8>, kMostSector>;
  // By bytes, 2 and 4, and sectors of 1, 8 and 16 elements.
  static const std::array<std::array<OfLate, 3>, 2> table = [] {
    std::array<std::array<OfLate, 3>, 2> all{};
    for (std::size_t i = 0; i < all.size(); ++i)
      for (std::size_t j = 0; j < all[i].size(); ++j)
        for (std::int64_t of = 0; of < kMostSector; ++of)
          all[i][j][static_cast<std::size_t>(of)] = vectors_to_fewest_conflicts(i == 0 ? 2 : 4, of,
                                                                                j == 0   ? 1
                                                                                : j == 1 ? 8
                                                                                         : kMostSector);
    return all;
  }();
  return table[bytes == 2 ? 0 : 1][sector == 1 ? 0 : sector == 8 ? 1 : 2][static_cast<std::size_t>(late)];
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
  load_bytes_ = nchw || problem.c < slice_channels_
                    ? 0
                    : static_cast<int>(std::gcd(problem.c * problem.input.element_bytes(), kRowBytes));
  const std::int64_t shared =
      shared_padding_pitch(columns.output, columns.input, columns.pad, columns.reach(), columns.stride);
  pitch_ = loads_pairs_ ? round_up(shared, 2) : shared;
  // Behind an odd padding a pair's second pixel belongs to the position behind its first. That of a row's last position
  // must lie outside of x, as the first pixel of the row below does.
  has_phase_pairs_ = nchw && columns.stride == 2 && phases_ == 2 && columns.input % 2 == 0 &&
                     (columns.pad % 2 == 0 || pitch_ * columns.stride >= columns.input + columns.pad);
  sector_elements_ = problem.output.layout() == Layout::nhwc || problem.phases.stores_pixels
                         ? 1
                         : static_cast<int>(32 / problem.output.element_bytes());
  alignment_outputs_ = static_cast<int>(sector_elements_ - std::gcd(plane_, std::int64_t{sector_elements_}));
  if (problem.phases.stores_pixels) count_met_taps();
  // Of NHWC outputs, only sums of folded columns are staged in runs.
  const bool nhwc = problem.output.layout() == Layout::nhwc;
  if (nhwc && 2 * problem.k > 64) return;
  for (const int bytes : {2, 4})
    for (const bool sector_runs : {false, true})
      if (!nhwc || (bytes == 4 && !sector_runs))
        more_vectors_[place(bytes, sector_runs)] =
            more_vectors(bytes, sector_runs ? plane_ % sector_elements_ : 0, sector_elements_);
}

int PixelGrid::row_ends(std::int64_t window) const {
  if (row_padding() == 0) return 0;  // nothing is left out between rows
  const std::int64_t q = problem_->columns.output, outputs = std::min(window + alignment_outputs_, plane_);
  // Runs start at multiples of the window: if rows are whole windows, or windows whole rows, none starts inside a row.
  if (alignment_outputs_ == 0 && q % window == 0) return 0;
  if (alignment_outputs_ == 0 && window % q == 0) return static_cast<int>(outputs / q) - 1;
  return static_cast<int>(ceil_div(outputs - 1, q));
}

std::int64_t PixelGrid::image_rows(int filter_rows) const {
  // A step that has one filter row has its rows only, whatever the stride; one that has all has a stride of 1.
  const Axis& rows = problem_->rows;
  return shared_padding_pitch(rows.output, rows.input, rows.pad, (filter_rows - 1) * rows.dilation, 1);
}

void PixelGrid::count_met_taps() {
  const std::int64_t columns = problem_->columns.taps;
  for (std::int64_t phase = 0; phase < tile_phases(); ++phase) {
    std::int64_t met = 0;
    for (std::int64_t tap = 0; tap < problem_->taps(); ++tap)
      met += meets_tap(phase, tap / columns, tap % columns) ? 1 : 0;
    met_taps_ += met;
    most_met_taps_ = std::max(most_met_taps_, met);
  }
}

std::int64_t PixelGrid::tile_phases() const { return outer_phases(problem_->phases); }

bool PixelGrid::meets_tap(std::int64_t tile_phase, std::int64_t r, std::int64_t s) const {
  const AxisPhases &rows = problem_->phases.rows, &columns = problem_->phases.columns;
  const auto column_meets = [&](const Phase& column) { return codegen::meets_tap(columns, column, s); };
  const auto at = [](const AxisPhases& axis, std::int64_t i) { return axis.list[static_cast<std::size_t>(i)]; };
  if (problem_->phases.columns_innermost)
    return codegen::meets_tap(rows, at(rows, tile_phase), r) && std::ranges::any_of(columns.list, column_meets);
  return codegen::meets_tap(rows, at(rows, tile_phase / columns.count()), r) &&
         column_meets(at(columns, tile_phase % columns.count()));
}

int PixelGrid::phase_of(std::int64_t s) const {
  return static_cast<int>(s * problem_->columns.dilation % problem_->columns.stride);
}

}  // namespace jitconv::codegen
