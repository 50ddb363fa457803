// See transpose_input/tiling.h.
#include "codegen/transpose_input/tiling.h"

#include <algorithm>

#include "codegen/arithmetic.h"
#include "codegen/f16_pairs.h"

namespace jitconv::codegen {
namespace {

/// Leaves of the axis what its taps meet, if that is every stride-th place of it.
Axis one_residue(const Axis& axis) {
  if (axis.stride == 1 || (axis.taps > 1 && axis.dilation % axis.stride != 0)) return axis;
  Axis kept = axis;
  kept.stride = 1;
  kept.dilation = axis.taps > 1 ? axis.dilation / axis.stride : 1;
  const std::int64_t first = positive_modulo(-axis.pad, axis.stride);
  kept.pad = (axis.pad + first) / axis.stride;
  kept.input = std::min(ceil_div(axis.input - first, axis.stride), axis.output + kept.reach() - kept.pad);
  if (axis.input <= first || kept.input < 1) return axis;  // taps meet nothing but padding
  return kept;
}

Problem with_operand_rows(const Problem& problem, bool as_pairs) {
  Problem transposed = problem;
  transposed.rows = one_residue(problem.rows);
  transposed.columns = one_residue(problem.columns);
  transposed.input.tensor = Tensor::scratch;
  transposed.input.first = 0;
  transposed.input.is_operand_rows = true;
  transposed.input.is_f16_pairs = as_pairs;
  // Pixels are whole rows of 16 bytes, so channels of a pixel are padded.
  const std::int64_t pixel =
      TransposeInputTiling::pixel_slices(transposed) * TransposeInputTiling::slice_channels(transposed);
  transposed.input.stride = dense_strides(Layout::nhwc, pixel, transposed.rows.input, transposed.columns.input);
  return transposed;
}

}  // namespace

Problem transposed_problem(const Problem& problem) { return with_operand_rows(problem, false); }

Problem split_problem(const Problem& problem) { return with_operand_rows(problem, true); }

TransposeInputTiling transpose_input_tiling(const Problem& asked, const Problem& transposed) {
  TransposeInputTiling tiling;
  // Strides that the convolution does not have any more, 1 if it has them, and the first places that they leave.
  const std::int64_t step_h = asked.rows.stride / transposed.rows.stride,
                     step_w = asked.columns.stride / transposed.columns.stride;
  const View::Strides& x = asked.input.stride;
  tiling.source = asked.input;
  tiling.source.first =
      positive_modulo(-asked.rows.pad, step_h) * x.h + positive_modulo(-asked.columns.pad, step_w) * x.w;
  tiling.source.stride.h *= step_h;
  tiling.source.stride.w *= step_w;
  // Lines of 128 bytes of a pixel, if it has as many.
  constexpr int kRows = 512, kMostSlices = 8;
  tiling.slices = kMostSlices;
  while (tiling.slices / 2 >= TransposeInputTiling::pixel_slices(transposed)) tiling.slices /= 2;
  tiling.pixels = kRows / tiling.slices;
  return tiling;
}

std::int64_t TransposeInputTiling::pixel_slices(const Problem& problem) {
  const std::int64_t slices = ceil_div(problem.input_channels(), slice_channels(problem));
  return problem.input.is_f16_pairs ? round_up(slices, kPairGroupRows) : slices;
}

std::int64_t TransposeInputTiling::transposed_bytes(const Problem& problem) {
  return round_up(problem.n * problem.input_plane() * pixel_slices(problem) * kRowBytes, 256);
}

std::int64_t TransposeInputTiling::pixel_tiles(const Problem& problem) const {
  return ceil_div(problem.n * problem.input_plane(), pixels);
}

std::int64_t TransposeInputTiling::slice_tiles(const Problem& problem) const {
  return ceil_div(pixel_slices(problem), slices);
}

std::int64_t TransposeInputTiling::blocks(const Problem& problem) const {
  return pixel_tiles(problem) * slice_tiles(problem);
}

}  // namespace jitconv::codegen
