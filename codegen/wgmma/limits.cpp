// See limits.h.
#include "codegen/wgmma/limits.h"

#include <algorithm>

#include "codegen/arithmetic.h"
#include "codegen/pack_weights/tiling.h"
#include "codegen/split_operands.h"
#include "codegen/tensor_map.h"
#include "fmt/format.h"

namespace jitconv::codegen {

std::string obstacle_of_wgmma(const Problem& problem, const Target& target) {
  if (const std::string_view rule = beyond_dense_forward(problem); !rule.empty()) return std::string(rule);
  const std::int64_t image = problem.input_channels() * problem.input_plane();
  if (target.compute_capability() != 90 || !target.arch_specific)
    return fmt::format("warpgroup multiplications need sm_90a, the target is {}", target.arch());
  if (problem.arithmetic == Arithmetic::fp32) return "math is ieee, which allows fp32 FMA only";
  if (splits_floats(problem.arithmetic) && problem.c * problem.taps() < kFewestSplitProducts)
    return fmt::format("sums of {} products, at least {} are needed so that split operands are as accurate as fp32 FMA",
                       problem.c * problem.taps(), kFewestSplitProducts);
  if (problem.groups > 1 && problem.c < 16)
    return fmt::format(
        "groups of {} channels, at least 16 are needed to fill a multiplication, and these cannot be joined",
        problem.c);
  if (problem.phases.stores_pixels && !can_write_phases(problem)) return "pixels of dx are no whole vectors of a phase";
  if (problem.alignment < 16) return fmt::format("alignment is {}, stores need 16", problem.alignment);
  if (problem.n * problem.output_channels() > INT32_MAX || problem.output_plane() > INT32_MAX - PixelGrid::kBehindPlane)
    return fmt::format("{} planes of {} outputs, both are counted with 32 bits", problem.n * problem.output_channels(),
                       problem.output_plane());
  if (image > INT32_MAX) return fmt::format("an image of {} elements, offsets inside one have 32 bits", image);
  // Runs end in rows behind the last, whose input rows are computed and not read.
  const std::int64_t rows = problem.rows.output + WgmmaTiling::kMostColumns / PixelGrid(problem).pitch() + 2;
  const std::int64_t last_row = rows * problem.rows.stride + (problem.rows.taps - 1) * problem.rows.dilation;
  const std::int64_t row_elements =
      problem.columns.input * (problem.input.layout() == Layout::nhwc ? problem.input_channels() : 1);
  if (last_row > INT32_MAX / row_elements)
    return fmt::format("input row {} of {} elements, offsets inside an image have 32 bits", last_row, row_elements);
  return PackWeightsTiling::obstacle(problem);
}

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

namespace {

/// Elements. Larger planes that several tiles would align are transposed before: 2048 channels of 37 x 38 pixels to 256
/// take 34 us then, not 48.
constexpr std::int64_t kMostAlignedPlane = 1024;

/// Whether rows of 16-bit channels are an operand: pixels of one tap, which lie as outputs do, and TMA can bring them.
bool can_multiply_planes(const WgmmaGeometry& geometry) {
  const Problem& problem = geometry.problem();
  const Axis &rows = problem.rows, &columns = problem.columns;
  const std::int64_t bytes = problem.input.element_bytes();
  if (problem.input.layout() != Layout::nchw || bytes != 2 || geometry.tiling().pipeline.slices == 1 ||
      problem.taps() != 1)
    return false;
  for (const Axis* axis : {&rows, &columns})
    if (axis->stride != 1 || axis->pad != 0 || axis->output != axis->input) return false;
  if (problem.c % geometry.chunk_channels() != 0 && problem.groups > 1) return false;
  return problem.n <= INT32_MAX &&
         problem.input_channels() * problem.input_plane() * bytes < TensorMapShape::kMostStride;
}

}  // namespace

bool can_use_planes(const WgmmaGeometry& geometry) {
  const Problem& problem = geometry.problem();
  // A part of a run lies in one image.
  if (geometry.tiling().tile.images > 1 && problem.input_plane() % WgmmaPixels::kPartPixels != 0) return false;
  return can_multiply_planes(geometry) &&
         problem.input_plane() * problem.input.element_bytes() % TensorMapShape::kUnit == 0;
}

bool can_align_planes(const WgmmaGeometry& geometry) {
  const Problem& problem = geometry.problem();
  const WgmmaTiling::Tile& tile = geometry.tiling().tile;
  if (!can_multiply_planes(geometry) || (geometry.tiles_k() > 1 && problem.input_plane() > kMostAlignedPlane))
    return false;
  const std::int64_t period = WgmmaPixels::plane_period(problem), vector = PixelGrid::kRowBytes / 2;
  // A vector has pixels of two images at most.
  if (tile.images > 1 && (problem.input_plane() < vector || tile.images > TensorMapShape::kMostBox)) return false;
  // Windows start where vectors of the first plane do.
  return period > 1 && problem.c % period == 0 && (tile.images > 0 || tile.window % vector == 0) &&
         (tile.images > 1 || tile.columns + vector <= TensorMapShape::kMostBox);
}

/// Smaller planes come as whole images: 4 x 640 x 7 x 7 to 128 takes 9.2 us by boxes of them, not 7.6.
constexpr std::int64_t kFewestPeriodPixels = 65;

bool can_copy_pixels(const WgmmaGeometry& geometry) {
  const Problem& problem = geometry.problem();
  const WgmmaTiling& tiling = geometry.tiling();
  if (problem.input.layout() != Layout::nchw) return false;
  const std::int64_t vector = PixelGrid::kRowBytes / problem.input.element_bytes(), input_plane = problem.input_plane();
  if (tiling.tile.images == 0) {
    WgmmaTiling converted = tiling;
    converted.producer.pixels = WgmmaTiling::Pixels::converted;
    return input_plane % vector == 0 ||
           (input_plane >= kFewestPeriodPixels && WgmmaGeometry(geometry, converted).pixels().copies_periods());
  }
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
