// See limits.h.
#include "codegen/wgmma/limits.h"

#include <algorithm>

#include "codegen/arithmetic.h"
#include "codegen/tensor_map.h"

namespace jitconv::codegen {

bool can_use_im2col(const WgmmaGeometry& geometry) {
  const Problem& problem = geometry.problem();
  const WgmmaTiling& tiling = geometry.tiling();
  if (tiling.pipeline.slices == 1 || geometry.run_pixels() > TensorMapShape::kMostIm2colPixels) return false;
  if (!geometry.reads_operand_rows() && geometry.load_bytes() != PixelGrid::kRowBytes) return false;
  if (problem.groups > 1 && problem.c % geometry.chunk_channels() != 0) return false;
  const auto [lower, upper] = im2col_corners(geometry);
  return std::max(problem.rows.stride, problem.columns.stride) <= TensorMapShape::kMostIm2colStride &&
         std::max((problem.rows.taps - 1) * problem.rows.dilation, std::int64_t{geometry.phases() - 1}) <=
             TensorMapShape::kMostIm2colOffset &&
         std::min({lower[0], lower[1], upper[0], upper[1]}) >= TensorMapShape::kLeastCorner &&
         std::max({lower[0], lower[1], upper[0], upper[1]}) <= TensorMapShape::kMostCorner;
}

bool can_use_planes(const WgmmaGeometry& geometry) {
  const Problem& problem = geometry.problem();
  const WgmmaTiling& tiling = geometry.tiling();
  const Axis &rows = problem.rows, &columns = problem.columns;
  const std::int64_t input_plane = problem.input_plane(), bytes = problem.input.element_bytes();
  if (problem.input.layout() != Layout::nchw || bytes != 2 || tiling.pipeline.slices == 1 || problem.taps() != 1)
    return false;
  for (const Axis* axis : {&rows, &columns})
    if (axis->stride != 1 || axis->pad != 0 || axis->output != axis->input) return false;
  if (problem.c % geometry.chunk_channels() != 0 && problem.groups > 1) return false;
  // A part of a run lies in one image.
  if (tiling.tile.images > 1 && input_plane % WgmmaPixels::kPartPixels != 0) return false;
  return input_plane * bytes % TensorMapShape::kUnit == 0 && problem.n <= INT32_MAX &&
         problem.input_channels() * input_plane * bytes < TensorMapShape::kMostStride;
}

bool can_copy_pixels(const WgmmaGeometry& geometry) {
  const Problem& problem = geometry.problem();
  const WgmmaTiling& tiling = geometry.tiling();
  if (problem.input.layout() != Layout::nchw) return false;
  const std::int64_t vector = PixelGrid::kRowBytes / problem.input.element_bytes(), input_plane = problem.input_plane();
  if (tiling.tile.images == 0) return input_plane % vector == 0;
  // Planes of consecutive channels are one copy.
  return problem.c * input_plane % vector == 0 && geometry.slice_channels() * input_plane % vector == 0;
}

std::int64_t groups_to_join(const Problem& problem) {
  constexpr std::int64_t kRows = 64, kMostProducts = 256;
  if (problem.groups == 1 || problem.c == 1 || problem.pixel_channels() == 1) return 1;
  if (splits_floats(problem.arithmetic) || (problem.is_sub_pixel() && !problem.phases.stores_pixels)) return 1;
  for (std::int64_t count = std::min(problem.groups, kRows / problem.pixel_channels()); count > 1; --count)
    if (problem.groups % count == 0 && count * problem.c <= kMostProducts) return count;
  return 1;
}

bool can_write_phases(const Problem& sub_pixel) {
  const AxisPhases &rows = sub_pixel.phases.rows, &columns = sub_pixel.phases.columns;
  const std::int64_t bytes = sub_pixel.input.element_bytes();
  // Narrower vectors take too many stores.
  constexpr std::int64_t kLeastVector = 8;
  if (sub_pixel.output.layout() == Layout::nhwc)
    return sub_pixel.k / sub_pixel.phases.count() * bytes % kLeastVector == 0;
  if (WgmmaStore::kStagedChannels % columns.count() != 0 ||
      sub_pixel.k / rows.count() % WgmmaStore::kStagedChannels != 0)
    return false;
  // A lane writes a pixel and the zeros beside it at once.
  return !columns.has_zeros() ||
         (PixelGrid::kRowBytes / bytes % columns.stride == 0 && columns.pixels % columns.stride == 0);
}

bool can_take_unpacked_weights(const WgmmaGeometry& geometry) {
  const Problem& problem = geometry.problem();
  const WgmmaTiling& tiling = geometry.tiling();
  const std::int64_t all_taps = geometry.taps(), row = problem.c * all_taps;
  if (tiling.pipeline.filter_rows != problem.rows.taps ||
      row * problem.input.element_bytes() % PixelGrid::kRowBytes != 0 || row > INT32_MAX)
    return false;
  if (all_taps == 1) return tiling.pipeline.slices == 8;  // rows are swizzled
  if (problem.input.type != DataType::f32 || problem.input.layout() != Layout::nchw) return false;
  // An even number of taps, or rows of whole lines, would cause bank conflicts.
  return all_taps % 2 != 0 && (tiling.pipeline.slices == 2 || tiling.pipeline.slices == 4) &&
         geometry.chunk_channels() * all_taps <= TensorMapShape::kMostBox;
}

bool can_take_transposed_weights(const WgmmaGeometry& geometry) {
  const Problem& problem = geometry.problem();
  if (!problem.asked_weight || problem.is_sub_pixel() || geometry.taps() != 1 || problem.input.element_bytes() != 2)
    return false;
  const View& weight = *problem.asked_weight;
  const auto is_whole = [](std::int64_t elements) { return 2 * elements % PixelGrid::kRowBytes == 0; };
  return geometry.tiling().pipeline.slices == 8 && weight.stride.n == 1 && is_whole(weight.stride.c) &&
         is_whole(weight.group) && weight.stride.c <= INT32_MAX;
}

bool can_fold_columns(const WgmmaGeometry& geometry) {
  const Problem& problem = geometry.problem();
  const WgmmaTiling::Tile& tile = geometry.tiling().tile;
  // A run's offsets in an NHWC y have 32 bits.
  const bool stored =
      problem.output.layout() == Layout::nchw ||
      (problem.output.type == problem.input.type && problem.output_channels() <= INT32_MAX / tile.columns);
  return problem.columns.stride == 1 && stored && tile.images == 0 && problem.joined_groups == 1 &&
         !problem.phases.stores_pixels && tile.channels == 64 && problem.k * tile.folded_columns <= tile.channels &&
         2 * problem.columns.taps > tile.folded_columns &&  // half as many would do
         geometry.fold_reach() < geometry.pitch();          // sums are of outputs in the row before, at most
}

bool can_slice_k(const WgmmaGeometry& geometry, const WgmmaStore& store) {
  const Problem& problem = geometry.problem();
  const WgmmaTiling& tiling = geometry.tiling();
  const std::int64_t last_split = geometry.steps() - (tiling.split_k - 1) * geometry.steps_of_split();
  return problem.output.layout() == Layout::nchw && store.staged_bytes() == 4 && last_split >= 2;
}

bool can_store_boxes(const WgmmaGeometry& geometry, const WgmmaStore& store) {
  const Problem& problem = geometry.problem();
  const WgmmaTiling& tiling = geometry.tiling();
  if (problem.output.layout() == Layout::nchw || tiling.tile.images > 0 || store.stores_sums() ||
      tiling.stores_pixels || tiling.converts_pixels() || tiling.folds_columns() || problem.epilogue.residual)
    return false;
  // Rows are whole, and a tile has no channels of another group.
  if (problem.k % (problem.groups > 1 ? tiling.tile.channels : geometry.box_row_channels()) != 0) return false;
  return problem.output_plane() * problem.output_channels() * problem.input.element_bytes() <
             TensorMapShape::kMostStride &&
         problem.n * problem.rows.output <= INT32_MAX &&
         problem.rows.output * geometry.run_row() <= INT32_MAX - PixelGrid::kBehindPlane;
}

}  // namespace jitconv::codegen
