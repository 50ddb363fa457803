// See store.h.
#include "codegen/wgmma/store.h"

#include <algorithm>
#include <numeric>

#include "codegen/arithmetic.h"

namespace jitconv::codegen {
namespace {

constexpr int kWarps = 8;  // of consumers

/// The size of equal parts of `columns`: about `wanted`, and apart from it by a multiple of `unit`. That is the largest
/// possible size up to `wanted`. If it is less than half of that, and not all columns, it is the smallest size between
/// `wanted` and twice as much. 0 if there is none.
int equal_part(int columns, int wanted, int unit) {
  for (int part = wanted; part >= unit; part -= unit)
    if (columns % part == 0 && (part == columns || 2 * part >= wanted)) return part;
  for (int part = wanted + unit; part <= 2 * wanted; part += unit)
    if (columns % part == 0) return part;
  return 0;
}

/// Whether outputs are staged in their own type, else as floats.
bool stages_elements(const Problem& problem, const WgmmaTiling& tiling) {
  return problem.output.type == DataType::f32 ||
         (tiling.split_k == 1 && !problem.epilogue.residual && !tiling.folds_columns());
}

}  // namespace

WgmmaStore::WgmmaStore(const WgmmaGeometry& geometry) : geometry_(geometry) {
  const Problem& problem = geometry.problem();
  const WgmmaTiling& tiling = geometry.tiling();
  lead_ = tiling.tile.images > 0 || geometry.alignment_outputs() == 0 ? 0 : geometry.sector_elements();
  stores_sums_ = tiling.split_k > 1 || problem.output.type != problem.input.type;
  written_bytes_ = stores_sums_ ? 4 : problem.output.element_bytes();
  staged_bytes_ = stages_elements(problem, tiling) ? static_cast<int>(problem.output.element_bytes()) : 4;
  staged_before_ = static_cast<int>(round_up(geometry.fold_reach(), WgmmaGeometry::kRowBytes / 4));
  stores_bulk_ = can_store_bulk();
  stores_planes_ = can_store_planes();
  store_columns_ = stages_runs() ? 0 : columns_nhwc();
  // Boxes are swizzled. Other rows of channels are a multiple of 16 bytes, so that eight positions of a channel, which
  // lanes store together, have no bank conflicts.
  staging_pitch_ = tiling.stores_boxes() ? kConsumerChannels
                   : stages_runs()       ? pitch_of_runs()
                                         : kConsumerChannels + 16 / staged_bytes_;
  staging_bytes_ = bytes_of_staging();
}

bool WgmmaStore::can_store_bulk() const {
  const Problem& problem = geometry_.problem();
  const WgmmaTiling& tiling = geometry_.tiling();
  if (problem.output.layout() == Layout::nhwc || tiling.stores_pixels || tiling.tile.images > 0 ||
      tiling.folds_columns() || (problem.epilogue.residual && tiling.split_k == 1))
    return false;
  constexpr std::int64_t kLine = 128;
  if (staged_bytes_ != 2 && geometry_.plane() * staged_bytes_ % kLine != 0) return false;
  // Runs at the ends of a plane may store vectors in part; some must lie between.
  return geometry_.plane() >= (lead_ == 0 ? tiling.tile.window : 2 * tiling.tile.window + geometry_.sector_elements());
}

bool WgmmaStore::can_store_planes() const {
  const Problem& problem = geometry_.problem();
  const WgmmaTiling::Tile& tile = geometry_.tiling().tile;
  // Sliced-K warpgroups each store half of the channels.
  if (problem.output.layout() == Layout::nhwc || geometry_.tiling().stores_pixels || tile.images == 0 ||
      staged_bytes_ != 2 || written_bytes_ != 2 || geometry_.tiling().schedule == WgmmaTiling::Schedule::sliced_k)
    return false;
  // Neighbouring outputs are neighbouring positions, of which eight, which a warp stages at a time, are of two images
  // at most. Pairs of outputs are staged where planes are even.
  return geometry_.row_padding() == 0 && (tile.images == 1 || geometry_.image_positions() >= 8) &&
         (geometry_.plane() % 2 != 0 || geometry_.image_positions() % 2 == 0) && problem.k % kStagedChannels == 0 &&
         store_width() == 1;
}

bool WgmmaStore::stages_runs() const {
  return geometry_.problem().output.layout() == Layout::nchw || geometry_.tiling().folds_columns();
}

int WgmmaStore::run_store_vector() const {
  const Problem& problem = geometry_.problem();
  const std::int64_t warp_channels = 16 / geometry_.tiling().tile.folded_columns;
  return static_cast<int>(std::gcd(problem.k, std::min(warp_channels, 16 / written_bytes_)));
}

int WgmmaStore::pitch_of_runs() const {
  if (stores_planes_) return geometry_.tiling().tile.window;
  const int vector = 16 / staged_bytes_,
            least = static_cast<int>(ceil_div(staged_before_ + geometry_.tiling().tile.columns + lead_, vector));
  return geometry_.staging_pitch_vectors(staged_bytes_, /*sector_runs=*/lead_ > 0, least) * vector;
}

int WgmmaStore::columns_nhwc() const {
  const WgmmaTiling& tiling = geometry_.tiling();
  constexpr int kBytes = 16 << 10, kBlock = 16;  // shared memory of a consumer, and what a store from registers takes
  const int most = kBytes / (kConsumerChannels * staged_bytes_);
  // Eight positions of floats are staged at a time, 16 of 16-bit outputs.
  if (tiling.stores_boxes()) return equal_part(tiling.tile.columns, most, staged_bytes_ == 2 ? 16 : 8);
  const int rounds = static_cast<int>(ceil_div(tiling.tile.columns, most));
  return static_cast<int>(round_up(ceil_div(tiling.tile.columns, rounds), kBlock));
}

std::int64_t WgmmaStore::bytes_of_staging() const {
  const WgmmaTiling& tiling = geometry_.tiling();
  if (tiling.stores_boxes()) return 2 * tiling.staged_boxes * box_bytes();
  const std::int64_t rows = stages_runs() ? kWarps * kStagedChannels : 2 * store_columns_;
  return staged_bytes_ * rows * staging_pitch_;
}

int WgmmaStore::store_width() const {
  const int vector = static_cast<int>(WgmmaGeometry::kRowBytes / written_bytes_);
  // In y images lie a plane apart, among a run's positions image_positions().
  const bool aligned = geometry_.plane() % vector == 0 &&
                       (geometry_.tiling().tile.images == 1 || geometry_.image_positions() % vector == 0);
  return geometry_.row_padding() == 0 && aligned ? vector : 1;
}

int WgmmaStore::store_vector() const {
  const Problem& problem = geometry_.problem();
  return static_cast<int>(std::gcd(problem.pixel_channels(), 16 / written_bytes_));
}

int WgmmaStore::pixels_of_store() const {
  const AxisPhases& columns = geometry_.problem().phases.columns;
  if (columns.has_zeros()) return static_cast<int>(columns.stride);
  if (columns.is_shifted() || columns.pixels % columns.count() != 0) return 1;
  return static_cast<int>(std::min(columns.count(), 16 / written_bytes_));
}

std::int64_t WgmmaStore::partial_sum_stride() const {
  const Problem& problem = geometry_.problem();
  return round_up(problem.n * problem.output_channels() * geometry_.plane(), 64);
}

std::int64_t WgmmaStore::partial_sum_bytes() const {
  const int splits = geometry_.tiling().split_k;
  return splits == 1 ? 0 : 4 * splits * partial_sum_stride();
}

}  // namespace jitconv::codegen
