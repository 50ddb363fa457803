// See pixels.h.
#include "codegen/wgmma/pixels.h"

#include <algorithm>

#include "codegen/arithmetic.h"
#include "codegen/tensor_map.h"
#include "codegen/wgmma/geometry.h"

namespace jitconv::codegen {
namespace {

constexpr std::int64_t kBoxAlignment = 128;  // bytes, where tensor maps copy to
constexpr std::int64_t kRowBytes = PixelGrid::kRowBytes;

std::int64_t padded_slice_pitch(const PixelGrid& grid, int slices, std::int64_t run_pixels) {
  if (!grid.loads_vectors() || slices == 1) return run_pixels;
  // Eight lanes store 128 bytes: 8 / slices pixels, each in all its slices or in eight of them.
  const std::int64_t distance = slices < 8 ? 8 / slices : 1;
  return round_up(run_pixels - distance, 2 * distance) + distance;
}

/// Of the pixels of one phase.
std::int64_t loads_of_warp(const PixelGrid& grid, int slices, std::int64_t run_pixels) {
  if (grid.loads_vectors()) return ceil_div(run_pixels * slices, kWarpSize);
  if (!grid.loads_pairs()) return ceil_div(run_pixels, kWarpSize);
  return ceil_div(run_pixels + grid.problem().columns.pad % 2, 2 * kWarpSize);
}

/// Whether pixels are copied by tensor maps at all, if what a run needs is no larger than a box.
bool maps_pixels(const Problem& problem, const WgmmaTiling& tiling) {
  // For 16-bit tensors, larger tiles with a copy per channel are faster. Planes are counted with 32 bits.
  return tiling.tile.images == 0 && problem.input.type == DataType::f32 &&
         problem.n * problem.input_channels() <= INT32_MAX;
}

/// Elements of a plane from the first that a run needs to the last, at most.
std::int64_t raw_elements(const PixelGrid& grid, std::int64_t run_pixels) {
  // The worst place of a run: as many rows end inside it as add elements, and both of its ends are in the padding.
  const Axis &rows = grid.problem().rows, &columns = grid.problem().columns;
  const std::int64_t last = run_pixels - 1, row_ends = (grid.pitch() - 1 + last) / grid.pitch();
  const std::int64_t more_of_row = rows.stride * columns.input - grid.pitch() * columns.stride;
  return std::max<std::int64_t>(0, row_ends * more_of_row) + last * columns.stride + grid.phases() +
         2 * std::max<std::int64_t>(0, grid.pitch() * columns.stride - columns.input);
}

}  // namespace

WgmmaPixels::WgmmaPixels(const PixelGrid& grid, const WgmmaTiling& tiling, std::int64_t run_pixels) {
  const int slices = tiling.pipeline.slices;
  slice_pitch_ = padded_slice_pitch(grid, slices, run_pixels);
  parts_ = ceil_div(std::int64_t{tiling.tile.columns}, kPartPixels);
  if (tiling.uses_im2col()) {
    pixel_step_ = slices, slice_step_ = 1;
    phase_bytes_ = round_up(run_pixels * slices * kRowBytes, kSwizzledBoxAlignment);
  } else if (tiling.multiplies_planes()) {
    pixel_step_ = 1, slice_step_ = grid.slice_channels() * kPartBytes / kRowBytes;
    phase_bytes_ = parts_ * slices * grid.slice_channels() * kPartBytes;
  } else {
    pixel_step_ = 1, slice_step_ = slice_pitch_;
    phase_bytes_ = slices * slice_pitch_ * kRowBytes;
  }
  run_bytes_ = grid.phases() * phase_bytes_;
  input_bytes_ = tiling.runs() * run_bytes_;
  im2col_bytes_ = tiling.runs() * grid.phases() * run_pixels * slices * kRowBytes;
  loads_phase_pairs_ = tiling.loads_pixels() && grid.has_phase_pairs();
  load_items_of_phase_ = loads_of_warp(grid, slices, run_pixels);
  load_items_ = loads_phase_pairs_ ? ceil_div(run_pixels + grid.problem().columns.pad % 2, kWarpSize)
                                   : load_items_of_phase_ * grid.phases();
  if (tiling.converts_pixels()) work_out_raw_pixels(grid, tiling, run_pixels);
  if (tiling.aligns_pixels()) work_out_planes(grid, tiling);
}

std::int64_t WgmmaPixels::plane_period(const Problem& problem) {
  return codegen::plane_period(problem.input_plane() * problem.input.element_bytes());
}

void WgmmaPixels::lay_out_boxes(std::int64_t boxes, std::int64_t elements, std::int64_t element_bytes) {
  box_elements_ = round_up(elements, kBoxAlignment / element_bytes);
  raw_run_elements_ = boxes * box_elements_;
}

void WgmmaPixels::work_out_planes(const PixelGrid& grid, const WgmmaTiling& tiling) {
  const std::int64_t element = grid.problem().input.element_bytes();
  copies_boxes_ = copies_periods_ = true;
  const std::int64_t vector = kRowBytes / element, period = plane_period(grid.problem());
  // What a row has before its first pixel, and of a part of a plane, whole vectors that are read behind the last.
  raw_pitch_ = tiling.tile.images > 1 ? round_up(grid.problem().input_plane() + vector - vector / period, vector)
                                      : tiling.tile.columns + vector;
  const std::int64_t rows = std::max(tiling.tile.images, 1) * tiling.pipeline.slices * grid.slice_channels() / period;
  lay_out_boxes(period, rows * raw_pitch_, element);
  raw_bytes_ = tiling.runs() * raw_run_elements_ * element;
}

void WgmmaPixels::work_out_raw_pixels(const PixelGrid& grid, const WgmmaTiling& tiling, std::int64_t run_pixels) {
  const Problem& problem = grid.problem();
  const Axis &rows = problem.rows, &columns = problem.columns;
  const std::int64_t plane = problem.input_plane(), element = problem.input.element_bytes();
  const std::int64_t vector = kRowBytes / element;
  const bool maps = maps_pixels(problem, tiling);
  // A run may start at the end of a row.
  raw_rows_ = (columns.output - 1 + run_pixels - 1) / grid.pitch() + 1;
  if (maps && rows.taps == 1 && rows.stride > 1 && rows.pad % rows.stride == 0)
    copies_rows_ =
        columns.input * element % kRowBytes == 0 && std::max(columns.input, raw_rows_) <= TensorMapShape::kMostBox;
  const std::int64_t elements = raw_elements(grid, run_pixels), period = plane_period(problem);
  // Of the plane before, in the vector where a plane starts.
  const std::int64_t before = vector - vector / period;
  copies_boxes_ =
      copies_rows_ || (maps && problem.c % period == 0 && elements + vector - 1 + before <= TensorMapShape::kMostBox);
  copies_periods_ = copies_boxes_ && period > 1;
  // Boxes start at vectors; other copies end at them, too.
  if (tiling.tile.images > 0)
    raw_pitch_ = plane;
  else if (!copies_boxes_)
    raw_pitch_ = std::min(round_up(elements, vector) + 2 * vector, plane);
  else if (copies_rows_)
    raw_pitch_ = raw_rows_ * columns.input;
  else
    raw_pitch_ = round_up(std::min(elements + vector - 1, plane) + before, vector);
  const int chunk_channels = tiling.pipeline.slices * grid.slice_channels();
  raw_run_elements_ = std::max(tiling.tile.images, 1) * chunk_channels * raw_pitch_;
  if (copies_boxes_) lay_out_boxes(period, raw_run_elements_ / period, element);
  raw_bytes_ = round_up(tiling.runs() * raw_run_elements_ * element, kRowBytes);
}

Im2colCorners im2col_corners(const WgmmaGeometry& geometry) {
  const Axis &rows = geometry.problem().rows, &columns = geometry.problem().columns;
  return {.lower = {-columns.pad, -rows.pad},
          .upper = {-columns.pad + (geometry.pitch() - 1) * columns.stride + 1 - columns.input,
                    -rows.pad + (geometry.image_rows() - 1) * rows.stride + 1 - rows.input}};
}

}  // namespace jitconv::codegen
