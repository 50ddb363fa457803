// What follows from a tiling of the wgmma_rows family and the problem.
#include "codegen/wgmma_rows/tiling.h"

#include <algorithm>

namespace jitconv::codegen {

int WgmmaRowsGeometry::consumer_registers() const {
  // Addresses and what an activation needs, besides accumulators.
  const int others = problem_.epilogue.activation == Activation::gelu_erf ? 64 : 56;
  return tiling_.columns / 2 / 8 * 8 + others;
}

int WgmmaRowsGeometry::producer_registers() const {
  const int left = (consumers() + 1) * launch_registers() - consumers() * consumer_registers();
  return std::min(left, 240) / 8 * 8;
}

int WgmmaRowsGeometry::load_registers() const { return producer_registers() - 48; }

std::int64_t WgmmaRowsGeometry::residues() const { return std::min(problem_.rows.dilation, problem_.rows.output); }

std::int64_t WgmmaRowsGeometry::rows_of_residue() const { return ceil_div(problem_.rows.output, residues()); }

std::int64_t WgmmaRowsGeometry::tiles_of_residue() const { return ceil_div(rows_of_residue(), tiling_.tile_rows); }

std::int64_t WgmmaRowsGeometry::strips() const { return ceil_div(problem_.columns.output, tiling_.window); }

PackWeightsTiling WgmmaRowsGeometry::packed_layout() const {
  PackWeightsTiling layout;
  layout.tile_channels = WgmmaRowsTiling::kRows / tiling_.folded_columns;
  layout.slices = tiling_.slices;
  layout.filter_rows = 1;
  layout.units = units();
  layout.row_pitch = strip_pixels();
  layout.folded_columns = tiling_.folded_columns;
  return layout;
}

int WgmmaRowsGeometry::lead() const {
  const int sector = sector_elements();
  return problem_.columns.output % sector == 0 ? 0 : sector;
}

int WgmmaRowsGeometry::staging_pitch() const {
  // From a channel to the next are 8 or 24 banks: lanes that stage sums of a fold have no bank conflicts, others
  // two-way ones.
  const int least = staged_before() + tiling_.columns + lead();
  return static_cast<int>(round_up(least - 8, 16)) + 8;
}

std::int64_t WgmmaRowsGeometry::staging_first_byte() const {
  return round_up(weights_first_byte() + (tiling_.keeps_weights ? chunks() * weight_bytes() : 0), 128);
}

}  // namespace jitconv::codegen
