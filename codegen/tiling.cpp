// What follows from a tiling and the convolution: sizes of tiles, windows and shared memory.
#include "codegen/tiling.h"

#include <algorithm>

#include "codegen/arithmetic.h"

namespace jitconv::codegen {

int DirectTiling::input_rows(const ConvSpec& spec) const {
  return static_cast<int>((block_p() - 1) * spec.stride.h + (spec.weight.r - 1) * spec.dilation.h + 1);
}

int DirectTiling::window(const ConvSpec& spec) const {
  return static_cast<int>(
      round_up(column_shift + (thread_q - 1) * spec.stride.w + (spec.weight.s - 1) * spec.dilation.w + 1, 4));
}

std::int64_t DirectTiling::input_stage_floats(const ConvSpec& spec) const {
  return round_up(std::int64_t{chunk_c} * input_rows(spec) * input_pitch, 32);
}

std::int64_t DirectTiling::weight_stage_floats(const ConvSpec& spec) const {
  return round_up(chunk_c * spec.weight.r * spec.weight.s * weight_pitch, 32);
}

std::int64_t DirectTiling::store_stage_floats() const {
  return std::int64_t{store_channels} * warp_p() * (warp_q() + 4);
}

int DirectTiling::store_vector(const ConvSpec& spec) const {
  const std::int64_t limit = std::min<std::int64_t>(16, spec.alignment) / element_bytes(spec.dtype);
  const std::int64_t group_k = spec.weight.k / spec.groups;
  std::int64_t vector = limit;
  while (thread_k % vector != 0 || group_k % vector != 0) vector /= 2;
  return static_cast<int>(vector);
}

std::int64_t DirectTiling::shared_bytes(const ConvSpec& spec) const {
  const std::int64_t pipeline = stages * (input_stage_floats(spec) + weight_stage_floats(spec));
  const std::int64_t store =
      spec.output_layout == Layout::nchw ? warps() * store_stage_floats() : std::int64_t{threads()} * thread_k;
  return 4 * std::max(pipeline, store);
}

int DepthwiseTiling::input_rows(const ConvSpec& spec) const {
  return static_cast<int>((tile_p() - 1) * spec.stride.h + (spec.weight.r - 1) * spec.dilation.h + 1);
}

int DepthwiseTiling::window(const ConvSpec& spec) const {
  return static_cast<int>(
      round_up(column_shift + (thread_q - 1) * spec.stride.w + (spec.weight.s - 1) * spec.dilation.w + 1, 4));
}

std::int64_t DepthwiseTiling::input_floats(const ConvSpec& spec) const {
  return std::int64_t{planes} * input_rows(spec) * input_pitch;
}

int DepthwiseTiling::store_vector(const ConvSpec& spec) const {
  return static_cast<int>(std::min<std::int64_t>(16, spec.alignment) / element_bytes(spec.dtype));
}

std::int64_t DepthwiseTiling::store_first_float(const ConvSpec& spec) const {
  const std::int64_t multiplier = spec.weight.k / spec.groups;
  if (multiplier == 1) return 0;
  return round_up(input_floats(spec) + planes * multiplier * spec.weight.r * spec.weight.s, 4);
}

std::int64_t DepthwiseTiling::shared_bytes(const ConvSpec& spec, const TensorShape& out) const {
  const std::int64_t multiplier = spec.weight.k / spec.groups;
  const std::int64_t loaded = input_floats(spec) + planes * multiplier * spec.weight.r * spec.weight.s;
  std::int64_t staged = 0;
  if (store == Store::flat) staged = (planes > 1 ? planes * out.h : tile_p()) * out.w + 16 / element_bytes(spec.dtype);
  if (store == Store::rows) staged = std::int64_t{tile_p()} * tile_q();
  return 4 * std::max(loaded, store_first_float(spec) + staged);
}

std::int64_t FallbackTiling::tiles_k(const ConvSpec& spec) const {
  return ceil_div(spec.weight.k / spec.groups, thread_k);
}

}  // namespace jitconv::codegen
