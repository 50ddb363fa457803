// See geometry.h.
#include "codegen/wgmma/geometry.h"

#include "codegen/arithmetic.h"

namespace jitconv::codegen {

WgmmaGeometry::WgmmaGeometry(const PixelGrid& grid, const WgmmaTiling& tiling)
    : PixelGrid(grid),
      tiling_(tiling),
      reach_(row_reach() - fold_reach() + (tiling.pipeline.filter_rows - 1) * problem().rows.dilation * pitch()),
      pixels_(grid, tiling, run_pixels()) {
  const WgmmaTiling::Pipeline& pipeline = tiling_.pipeline;
  taps_ = pipeline.filter_rows * fold().taps();
  units_ = round_up(taps_ * pipeline.slices, 2);
  steps_ = ceil_div(problem().c, chunk_channels()) * (problem().rows.taps / pipeline.filter_rows);
  tiles_k_ = ceil_div(problem().k, tiling_.tile.channels);
  tiles_of_images_ = tiling_.tile.images > 0 ? ceil_div(problem().n, std::int64_t{tiling_.runs()} * tiling_.tile.images)
                                             : problem().n * tiles_of_plane();
  all_tiles_ = problem().groups * tiles_k_ * tiles_of_images_;
}

std::vector<int> WgmmaGeometry::tap_order() const {
  return codegen::tap_order(problem(), tiling_.pipeline.filter_rows, pitch(), tiling_.tile.folded_columns);
}

std::int64_t WgmmaGeometry::tap_place(int tap) const {
  const Axis& columns = problem().columns;
  const std::int64_t r = tap / fold().taps(), s = fold().first_column(tap % fold().taps());
  return r * problem().rows.dilation * pitch() + s * columns.dilation / columns.stride;
}

int WgmmaGeometry::row_ends() const {
  return tiling_.tile.images > 0 || tiling_.stores_boxes() || tiling_.stores_pixels
             ? 0
             : PixelGrid::row_ends(tiling_.tile.window);
}

std::int64_t WgmmaGeometry::run_row() const {
  const std::int64_t outputs = problem().columns.output;
  return tiling_.stores_boxes() && !boxes_cross_rows() ? round_up(outputs, std::int64_t{tiling_.tile.columns})
                                                       : outputs;
}

std::int64_t WgmmaGeometry::steps_of_split() const { return ceil_div(steps(), tiling_.split_k); }

std::int64_t WgmmaGeometry::tiles_of_plane() const {
  return ceil_div(problem().rows.output * run_row(), std::int64_t{tiling_.runs()} * tiling_.tile.window);
}

std::int64_t WgmmaGeometry::packed_rows() const {
  if (!tiling_.packs_weights()) return 0;
  return problem().groups * tiles_k() * steps_ * tiling_.operand_parts() * units_ * tiling_.tile.channels;
}

WgmmaGeometry::SplitRows WgmmaGeometry::split_rows() const {
  // The first warp only asks for copies. Larger batches are no faster.
  constexpr std::int64_t kThreads = std::int64_t{WgmmaTiling::kProducerWarps - 1} * kWarpSize, kMostRows = 6;
  const std::int64_t rows = ceil_div(run_pixels() * tiling_.pipeline.slices, kThreads);
  const std::int64_t batches = ceil_div(rows, kMostRows);
  return {ceil_div(rows, batches), batches};
}

bool WgmmaGeometry::skips_zero_taps() const {
  // Each phase has a list of its own. More than that take seconds to compile, and split operands then spill.
  constexpr std::int64_t kMostMultiplications = 36;
  if (!tiling_.stores_pixels || tiling_.splits_operands() || !tiling_.packs_weights()) return false;
  return tiling_.pipeline.slices > 1 && tiling_.pipeline.filter_rows == problem().rows.taps &&
         tile_phase_channels() % tiling_.tile.channels == 0 && met_taps() < tile_phases() * taps_ &&
         met_taps() * tiling_.pipeline.slices / 2 <= kMostMultiplications;
}

std::int64_t WgmmaGeometry::multiplied_units() const {
  return skips_zero_taps() ? ceil_div(units_ * met_taps(), tile_phases() * taps_) : units_;
}

std::int64_t WgmmaGeometry::most_multiplied_units() const {
  return skips_zero_taps() ? most_met_taps() * tiling_.pipeline.slices : units_;
}

std::vector<int> WgmmaGeometry::promotion_groups(int all) const {
  const int groups = static_cast<int>(ceil_div(all, tiling_.promotion_interval));
  std::vector<int> sizes;
  for (int group = 0; group < groups; ++group) sizes.push_back(all * (group + 1) / groups - all * group / groups);
  return sizes;
}

std::int64_t WgmmaGeometry::channel_at(std::int64_t place) const {
  if (!multiplies_registers()) return place;
  // Lane l holds neighbours, of each multiplication's eight places two, l % 4 and l % 4 + 4.
  const std::int64_t chunk = place / chunk_channels() * chunk_channels();
  return chunk + place % 4 * lane_channels() + (place - chunk) / 8 * 2 + place / 4 % 2;
}

}  // namespace jitconv::codegen
