// Runs, steps, tiles, and what comes of the input and the weights. Where that lies in memory is in memory.cpp.
#include "codegen/wgmma/geometry.h"

#include <algorithm>
#include <array>

#include "codegen/arithmetic.h"
#include "codegen/tensor_map.h"

namespace jitconv::codegen {
namespace {

// Bytes, where tensor maps copy to.
constexpr std::int64_t kBoxAlignment = 128, kSwizzledBoxAlignment = 1024;

}  // namespace

WgmmaGeometry::WgmmaGeometry(const PixelGrid& grid, const WgmmaTiling& tiling) : PixelGrid(grid), tiling_(tiling) {
  const WgmmaTiling::Pipeline& pipeline = tiling_.pipeline;
  const Axis& rows = problem().rows;
  taps_ = pipeline.filter_rows * fold().taps();
  units_ = round_up(taps_ * pipeline.slices, 2);
  steps_ = ceil_div(problem().c, chunk_channels()) * (rows.taps / pipeline.filter_rows);
  reach_ = row_reach() - fold_reach() + (pipeline.filter_rows - 1) * rows.dilation * pitch();
  tiles_k_ = ceil_div(problem().k, tiling_.tile.channels);
  tiles_of_images_ = tiling_.tile.images > 0 ? ceil_div(problem().n, std::int64_t{tiling_.runs()} * tiling_.tile.images)
                                             : problem().n * tiles_of_plane();
  all_tiles_ = problem().groups * tiles_k_ * tiles_of_images_;
  phase_bytes_ = phase_bytes_of_runs();
  const std::int64_t pixel_bytes = tiling_.operand_parts() * input_bytes();
  weights_in_stage_ = tiling_.packs_weights() ? pixel_bytes : round_up(pixel_bytes, kSwizzledBoxAlignment);
  if (tiling_.converts_pixels()) work_out_raw_pixels();
}

void WgmmaGeometry::work_out_raw_pixels() {
  const Axis &rows = problem().rows, &columns = problem().columns;
  const std::int64_t plane = problem().input_plane(), element = problem().input.element_bytes();
  const std::int64_t vector = kRowBytes / element;
  if (maps_pixels() && rows.taps == 1 && rows.stride > 1 && rows.pad % rows.stride == 0)
    copies_rows_ =
        columns.input * element % kRowBytes == 0 && std::max(columns.input, raw_rows()) <= TensorMapShape::kMostBox;
  const std::int64_t elements = raw_elements();
  copies_boxes_ = copies_rows_ || (maps_pixels() && elements + kRowBytes / 4 - 1 <= TensorMapShape::kMostBox);
  // Boxes start at vectors; other copies end at them, too.
  if (tiling_.tile.images > 0)
    raw_pitch_ = plane;
  else if (!copies_boxes_)
    raw_pitch_ = std::min(round_up(elements, vector) + 2 * vector, plane);
  else if (copies_rows_)
    raw_pitch_ = raw_rows() * columns.input;
  else
    raw_pitch_ = std::min(round_up(elements + vector - 1, vector), plane);
  raw_run_elements_ = std::max(tiling_.tile.images, 1) * chunk_channels() * raw_pitch_;
  if (copies_boxes_) raw_run_elements_ = round_up(raw_run_elements_, kBoxAlignment / element);
  raw_bytes_ = round_up(tiling_.runs() * raw_run_elements_ * element, kRowBytes);
}

std::int64_t WgmmaGeometry::load_items() const {
  if (loads_vectors()) return ceil_div(run_pixels() * tiling_.pipeline.slices, kWarpSize);
  if (!loads_pairs()) return ceil_div(run_pixels(), kWarpSize);
  return ceil_div(run_pixels() + problem().columns.pad % 2, 2 * kWarpSize);
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
  return tiling_.tile.images > 0 || tiling_.stores_boxes() ? 0 : PixelGrid::row_ends(tiling_.tile.window);
}

bool WgmmaGeometry::can_use_im2col() const {
  if (tiling_.pipeline.slices == 1 || run_pixels() > TensorMapShape::kMostWalkedPixels) return false;
  if (!reads_transposed() && load_bytes() != kRowBytes) return false;
  if (problem().groups > 1 && problem().c % chunk_channels() != 0) return false;
  const std::array<std::int64_t, 2> lower = walk_lower(), upper = walk_upper();
  return std::max(problem().rows.stride, problem().columns.stride) <= TensorMapShape::kMostWalkedStride &&
         std::max((problem().rows.taps - 1) * problem().rows.dilation, std::int64_t{phases() - 1}) <=
             TensorMapShape::kMostWalkedOffset &&
         std::min({lower[0], lower[1], upper[0], upper[1]}) >= TensorMapShape::kLeastCorner &&
         std::max({lower[0], lower[1], upper[0], upper[1]}) <= TensorMapShape::kMostCorner;
}

std::array<std::int64_t, 2> WgmmaGeometry::walk_upper() const {
  const auto [left, top] = walk_lower();
  return {left + (pitch() - 1) * problem().columns.stride + 1 - problem().columns.input,
          top + (image_rows() - 1) * problem().rows.stride + 1 - problem().rows.input};
}

std::int64_t WgmmaGeometry::walked_bytes() const {
  return tiling_.runs() * phases() * run_pixels() * tiling_.pipeline.slices * kRowBytes;
}

bool WgmmaGeometry::can_use_planes() const {
  const Axis &rows = problem().rows, &columns = problem().columns;
  const std::int64_t input_plane = problem().input_plane(), bytes = problem().input.element_bytes();
  if (problem().input.layout() != Layout::nchw || bytes != 2 || tiling_.pipeline.slices == 1 || problem().taps() != 1)
    return false;
  for (const Axis* axis : {&rows, &columns})
    if (axis->stride != 1 || axis->pad != 0 || axis->output != axis->input) return false;
  if (problem().c % chunk_channels() != 0 && problem().groups > 1) return false;
  // A part of a run lies in one image.
  if (tiling_.tile.images > 1 && input_plane % kPartPixels != 0) return false;
  return input_plane * bytes % TensorMapShape::kUnit == 0 && problem().n <= INT32_MAX &&
         problem().input_channels() * input_plane * bytes < TensorMapShape::kMostStride;
}

std::int64_t WgmmaGeometry::parts() const { return ceil_div(std::int64_t{tiling_.tile.columns}, kPartPixels); }

std::int64_t WgmmaGeometry::run_row() const {
  const std::int64_t outputs = problem().columns.output;
  return tiling_.stores_boxes() && !boxes_cross_rows() ? round_up(outputs, std::int64_t{tiling_.tile.columns})
                                                       : outputs;
}

bool WgmmaGeometry::can_store_boxes() const {
  if (problem().output.layout() == Layout::nchw || tiling_.tile.images > 0 || stores_sums() ||
      tiling_.converts_pixels() || problem().epilogue.residual)
    return false;
  // Rows are whole, and a tile has no channels of another group.
  if (problem().k % (problem().groups > 1 ? tiling_.tile.channels : box_row_channels()) != 0) return false;
  return problem().output_plane() * problem().output_channels() * problem().input.element_bytes() <
             TensorMapShape::kMostStride &&
         problem().n * problem().rows.output <= INT32_MAX &&
         problem().rows.output * run_row() <= INT32_MAX - kBehindPlane;
}

bool WgmmaGeometry::copies_fit() const {
  if (problem().input.layout() != Layout::nchw) return false;
  const std::int64_t vector = kRowBytes / problem().input.element_bytes(), input_plane = problem().input_plane();
  if (tiling_.tile.images == 0) return input_plane % vector == 0;
  // Planes of consecutive channels are one copy.
  return problem().c * input_plane % vector == 0 && slice_channels() * input_plane % vector == 0;
}

bool WgmmaGeometry::maps_pixels() const {
  // For 16-bit tensors, larger tiles with a copy per channel are faster. Planes are counted with 32 bits.
  return tiling_.converts_pixels() && tiling_.tile.images == 0 && problem().input.type == DataType::f32 &&
         problem().n * problem().input_channels() <= INT32_MAX;
}

std::int64_t WgmmaGeometry::raw_rows() const {
  // A run may start at the end of a row.
  return (problem().columns.output - 1 + run_pixels() - 1) / pitch() + 1;
}

std::int64_t WgmmaGeometry::raw_elements() const {
  // Of the positions of a run, as many rows as make most elements; a row may start or end in the padding.
  const std::int64_t last = run_pixels() - 1, rows = (pitch() - 1 + last) / pitch();
  const std::int64_t more_of_row = problem().rows.stride * problem().columns.input - pitch() * problem().columns.stride;
  return std::max<std::int64_t>(0, rows * more_of_row) + last * problem().columns.stride + phases() +
         2 * std::max<std::int64_t>(0, pitch() * problem().columns.stride - problem().columns.input);
}

std::int64_t WgmmaGeometry::steps_of_split() const { return ceil_div(steps(), tiling_.split_k); }

std::int64_t WgmmaGeometry::tiles_of_plane() const {
  return ceil_div(problem().rows.output * run_row(), std::int64_t{tiling_.runs()} * tiling_.tile.window);
}

bool WgmmaGeometry::can_take_unpacked_weights() const {
  const std::int64_t all_taps = taps(), row = problem().c * all_taps;
  if (tiling_.pipeline.filter_rows != problem().rows.taps || row * problem().input.element_bytes() % kRowBytes != 0 ||
      row > INT32_MAX)
    return false;
  if (all_taps == 1) return tiling_.pipeline.slices == 8;  // rows are swizzled
  if (problem().input.type != DataType::f32 || problem().input.layout() != Layout::nchw) return false;
  // An even number of taps, or rows of whole lines, would cause bank conflicts.
  return all_taps % 2 != 0 && (tiling_.pipeline.slices == 2 || tiling_.pipeline.slices == 4) &&
         chunk_channels() * all_taps <= TensorMapShape::kMostBox;
}

std::int64_t WgmmaGeometry::packed_rows() const {
  if (!tiling_.packs_weights()) return 0;
  return problem().groups * tiles_k() * steps_ * tiling_.operand_parts() * units_ * tiling_.tile.channels;
}

std::vector<int> WgmmaGeometry::promotion_groups() const {
  const int all = static_cast<int>(units_ / 2);
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

bool WgmmaGeometry::can_slice_k() const {
  const std::int64_t last_split = steps() - (tiling_.split_k - 1) * steps_of_split();
  return problem().output.layout() == Layout::nchw && staged_bytes() == 4 && last_split >= 2;
}

bool WgmmaGeometry::can_fold_columns() const {
  const WgmmaTiling::Tile& tile = tiling_.tile;
  return problem().columns.stride == 1 && problem().output.layout() == Layout::nchw && tile.images == 0 &&
         tile.channels == 64 && problem().k * tile.folded_columns <= tile.channels &&
         2 * problem().columns.taps > tile.folded_columns &&  // half as many would do
         fold_reach() < pitch();                              // sums are of outputs in the row before, at most
}

std::int64_t WgmmaGeometry::partial_sum_stride() const {
  return round_up(problem().n * problem().output_channels() * plane(), 64);
}

std::int64_t WgmmaGeometry::partial_sum_bytes() const {
  return tiling_.split_k == 1 ? 0 : 4 * tiling_.split_k * partial_sum_stride();
}

}  // namespace jitconv::codegen
