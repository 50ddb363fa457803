// The parameters of a wgmma kernel: which tensors it gets as tensor maps, and how TMA sees them.
#include <algorithm>

#include "codegen/arithmetic.h"
#include "codegen/f16_pairs.h"
#include "codegen/wgmma/emit.h"
#include "codegen/wgmma/store.h"
#include "jitconv/error.h"

namespace jitconv::codegen {
namespace {

/// w as rows of output channels, or of a data gradient's input channels: a box is what a tile needs of a step, or what
/// a consumer does.
TensorMapShape weight_map(const WgmmaGeometry& geometry) {
  const Problem& problem = geometry.problem();
  const WgmmaTiling& tiling = geometry.tiling();
  if (tiling.takes_weights_transposed())
    return {.rank = 3,
            .element_bytes = 2,
            .extents = {problem.k, problem.c, problem.groups},
            .strides = {1, problem.weight.stride.c, problem.weight.group},
            .box = {64, geometry.chunk_channels(), 1},
            .swizzle_bytes = 128};
  const std::int64_t row = problem.c * problem.taps();
  return {.rank = 2,
          .element_bytes = static_cast<int>(problem.input.element_bytes()),
          .extents = {row, problem.output_channels()},
          .strides = {1, row},
          .box = {static_cast<int>(geometry.chunk_channels() * geometry.taps()), tiling.tile.channels},
          .swizzle_bytes = geometry.swizzles_weights() ? 128 : 0,
          .rounds_to_tf32 = geometry.swizzles_weights() && problem.input.type == DataType::f32};
}

/// x, or what it is transposed to, as pixels, which a copy in im2col mode brings in the order of the grid's positions.
TensorMapShape im2col_map(const WgmmaGeometry& geometry) {
  const Problem& problem = geometry.problem();
  const WgmmaTiling& tiling = geometry.tiling();
  const View::Strides& x = problem.input.stride;
  const Im2colCorners corners = im2col_corners(geometry);
  // Pairs of the last channels lie among those of channels that do not exist.
  const std::int64_t channels =
      tiling.splits_input() ? round_up(problem.input_channels(), kPairGroupChannels) : problem.input_channels();
  const auto corner = [](const std::array<std::int64_t, 2>& places) {
    return std::array{static_cast<int>(places[0]), static_cast<int>(places[1])};
  };
  return {.rank = 4,
          .element_bytes = static_cast<int>(problem.input.element_bytes()),
          .extents = {channels, problem.columns.input, problem.rows.input, problem.n},
          .strides = {x.c, x.w, x.h, x.n},
          .box = {geometry.chunk_channels(), static_cast<int>(geometry.run_pixels())},
          .swizzle_bytes = 16 * tiling.pipeline.slices,
          .rounds_to_tf32 =
              problem.input.type == DataType::f32 && !geometry.reads_operand_rows() && !tiling.splits_operands(),
          .im2col = TensorMapShape::Im2col{
              corner(corners.lower),
              corner(corners.upper),
              {static_cast<int>(problem.columns.stride), static_cast<int>(problem.rows.stride)}}};
}

/// x as planes of all images: a box is what a run needs of a step's channels. All of them are of floats.
TensorMapShape pixel_map(const WgmmaGeometry& geometry) {
  const Problem& problem = geometry.problem();
  const std::int64_t plane = problem.input_plane(), planes = problem.n * problem.input_channels();
  const int channels = geometry.chunk_channels();
  if (geometry.pixels().copies_rows())
    return {.rank = 3,
            .extents = {problem.columns.input, ceil_div(problem.rows.input, problem.rows.stride), planes},
            .strides = {1, problem.rows.stride * problem.columns.input, plane},
            .box = {static_cast<int>(problem.columns.input), static_cast<int>(geometry.pixels().raw_rows()), channels},
            .rounds_to_tf32 = !geometry.tiling().splits_operands()};
  return {.rank = 2,
          .extents = {plane, planes},
          .strides = {1, plane},
          .box = {static_cast<int>(geometry.pixels().raw_pitch()), channels},
          .rounds_to_tf32 = !geometry.tiling().splits_operands()};
}

/// x as rows of so many planes that each starts at whole 16 bytes, of every image: a box has one plane of each of
/// a step's rows, of a run's images, from 16 bytes on that hold the first pixel.
TensorMapShape period_map(const WgmmaGeometry& geometry) {
  const Problem& problem = geometry.problem();
  const std::int64_t period = WgmmaPixels::plane_period(problem), row = period * problem.input_plane();
  return {.rank = 3,
          .element_bytes = static_cast<int>(problem.input.element_bytes()),
          .extents = {row, problem.input_channels() / period, problem.n},
          .strides = {1, row, problem.input.stride.n},
          .box = {static_cast<int>(geometry.pixels().raw_pitch()), static_cast<int>(geometry.chunk_channels() / period),
                  std::max(geometry.tiling().tile.images, 1)},
          .rounds_to_tf32 = problem.input.type == DataType::f32 && !geometry.tiling().splits_operands()};
}

/// x as planes of every image: a box is a part of a run of a step's channels.
TensorMapShape plane_map(const WgmmaGeometry& geometry) {
  const Problem& problem = geometry.problem();
  const std::int64_t plane = problem.input_plane();
  return {.rank = 3,
          .element_bytes = static_cast<int>(problem.input.element_bytes()),
          .extents = {plane, problem.input_channels(), problem.n},
          .strides = {1, plane, problem.input.stride.n},
          .box = {static_cast<int>(WgmmaPixels::kPartPixels), geometry.chunk_channels(), 1},
          .swizzle_bytes = 128};
}

/// y, as boxes of a consumer's outputs. Channels are two axes, so that a position's rows of 128 bytes, of which
/// swizzled boxes are, follow each other: of floats, TMA then writes 256 bytes at a time (B in TF32 2.54
/// ms, 2.62 a row at a time).
TensorMapShape output_map(const WgmmaGeometry& geometry) {
  const Problem& problem = geometry.problem();
  const std::int64_t row = geometry.box_row_channels(), rows = problem.output_channels() / row;
  const bool crosses = geometry.boxes_cross_rows();
  return {.rank = 4,
          .element_bytes = static_cast<int>(problem.input.element_bytes()),
          .extents = {row, rows, crosses ? problem.output_plane() : problem.columns.output,
                      crosses ? problem.n : problem.n * problem.rows.output},
          .strides = {1, row, problem.output_channels(),
                      problem.output_channels() * problem.columns.output * (crosses ? problem.rows.output : 1)},
          .box = {static_cast<int>(row), geometry.box_rows(), WgmmaStore(geometry).store_columns(), 1},
          .swizzle_bytes = 128,
          .writes_scratch = is_scratch(problem.output.tensor)};
}

}  // namespace

std::vector<Argument> wgmma_arguments(const WgmmaGeometry& geometry) {
  const Problem& problem = geometry.problem();
  const WgmmaTiling& tiling = geometry.tiling();
  const bool split = tiling.split_k > 1;
  const Tensor x = problem.input.tensor, w = problem.weight.tensor, y = problem.output.tensor;
  std::vector<Argument> result;
  for (Argument& argument : arguments(problem)) {
    if (argument.tensor == x && tiling.uses_im2col())
      result.push_back(tensor_map(x, "x_map", im2col_map(geometry)));
    else if (argument.tensor == x && tiling.uses_planes())
      result.push_back(tensor_map(x, "x_map", plane_map(geometry)));
    else if (argument.tensor == x && geometry.pixels().copies_periods())
      result.push_back(tensor_map(x, "x_map", period_map(geometry)));
    else if (argument.tensor == x && geometry.pixels().copies_boxes())
      result.push_back(tensor_map(x, "x_map", pixel_map(geometry)));
    else if (argument.tensor == w && tiling.packs_weights())
      result.push_back({w, "const uint4* __restrict__", "packed_w"});
    else if (argument.tensor == w)
      result.push_back(tensor_map(w, "w_map", weight_map(geometry)));
    else if (argument.tensor == y && split)
      result.push_back({y, "float* __restrict__", "partial_sums"});
    else if (argument.tensor == y && tiling.stores_boxes())
      result.push_back(tensor_map(y, "y_map", output_map(geometry)));
    else if (argument.tensor == x || !split)
      result.push_back(std::move(argument));
  }
  // Not __restrict__: kernels before, which may still run when this one starts, make them.
  if (tiling.f16_pairs && !problem.input.range) throw InternalError("pairs of fp16 numbers without a range of x");
  if (tiling.f16_pairs)
    result.insert(result.end(), {{w, "const uint4*", "w_range"}, {*problem.input.range, "const uint4*", "x_range"}});
  return result;
}

}  // namespace jitconv::codegen
