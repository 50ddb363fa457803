// See gather_patches/tiling.h.
#include "codegen/gather_patches/tiling.h"

#include <algorithm>

#include "codegen/arithmetic.h"

namespace jitconv::codegen {

bool can_gather_patches(const Problem& asked) {
  constexpr std::int64_t kMostChannels = 16, kMostOverlap = 4;
  if (asked.groups > 1 || asked.c > kMostChannels || asked.taps() == 1 || asked.asked_weight || asked.is_upsampled())
    return false;
  // Offsets inside an image have 32 bits, also those of rows behind the last, which are computed and not read.
  const std::int64_t rows = asked.rows.output * asked.rows.stride + asked.rows.reach();
  const std::int64_t columns = asked.columns.output * asked.columns.stride + asked.columns.reach();
  if (std::max(asked.rows.input, rows) > INT32_MAX / (asked.c * std::max(asked.columns.input, columns))) return false;
  const GatherPatchesTiling tiling = gather_patches_tiling(asked);
  const std::int64_t bytes = tiling.all_rows(asked) * GatherPatchesTiling::kRowBytes;
  return tiling.patch_rows() > 1 && bytes <= kMostPreparedBytes &&
         bytes <= kMostOverlap * asked.input_elements() * asked.input.element_bytes();
}

Problem patch_problem(const Problem& asked) {
  const GatherPatchesTiling tiling = gather_patches_tiling(asked);
  Problem patches = asked;
  patches.c = tiling.patch_elements();
  patches.rows = {.input = asked.rows.output, .output = asked.rows.output};
  patches.columns = {.input = asked.columns.output, .output = asked.columns.output};
  patches.weight = dense_weight(asked.weight.tensor, asked.weight.type, patches.k, patches.c, 1, 1);
  patches.input.tensor = Tensor::scratch;
  patches.input.first = 0;
  patches.input.is_operand_rows = true;
  patches.input.stride =
      dense_strides(Layout::nhwc, tiling.patch_rows() * tiling.row_elements(), asked.rows.output, asked.columns.output);
  return patches;
}

GatherPatchesTiling gather_patches_tiling(const Problem& asked) {
  return {.source = asked.input,
          .rows = asked.rows,
          .columns = asked.columns,
          .channels = asked.c,
          .alignment = asked.alignment};
}

std::int64_t GatherPatchesTiling::patch_rows() const { return ceil_div(patch_elements(), row_elements()); }

std::int64_t GatherPatchesTiling::all_rows(const Problem& problem) const {
  return problem.n * problem.output_plane() * patch_rows();
}

int GatherPatchesTiling::load_elements() const {
  if (source.stride.w != 1 || columns.dilation != 1) return 1;
  int elements = static_cast<int>(std::min(kRowBytes, alignment) / source.element_bytes());
  for (const std::int64_t extent : {columns.taps, columns.stride, columns.pad, columns.input, source.stride.h,
                                    source.stride.c, source.stride.n, source.first})
    while (extent % elements != 0) elements /= 2;
  return elements;
}

std::int64_t GatherPatchesTiling::priced_bytes(const Problem& problem) const {
  const std::int64_t read = problem.n * channels * rows.input * columns.input * source.element_bytes();
  return (load_elements() == 1 ? 2 : 1) * (read + all_rows(problem) * kRowBytes);
}

std::int64_t GatherPatchesTiling::blocks(const Problem& problem) const { return ceil_div(all_rows(problem), kThreads); }

}  // namespace jitconv::codegen
