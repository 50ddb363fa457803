// What follows from a pointwise tiling and the convolution.
#include <algorithm>

#include "codegen/arithmetic.h"
#include "codegen/tiling.h"

namespace jitconv::codegen {
namespace {

constexpr std::int64_t kRowBytes = 16;  // of a matrix operand: four channels
constexpr std::int64_t kBarrierBytes = 8;

}  // namespace

std::int64_t PointwiseTiling::steps(const ConvSpec& spec) const { return spec.weight.c / chunk_channels; }

std::int64_t PointwiseTiling::steps_of_split(const ConvSpec& spec) const { return ceil_div(steps(spec), splits); }

std::int64_t PointwiseTiling::tiles_k(const ConvSpec& spec) const {
  return ceil_div(spec.weight.k / spec.groups, block_k());
}

std::int64_t PointwiseTiling::slabs(const ConvSpec& spec) const { return spec.groups * tiles_k(spec) * splits; }

std::int64_t PointwiseTiling::slab_slices(const ConvSpec& spec) const {
  return steps_of_split(spec) * chunk_channels / 4;
}

std::int64_t PointwiseTiling::pixels(const ConvSpec& spec) { return spec.input.n * spec.input.h * spec.input.w; }

std::int64_t PointwiseTiling::tiles(const ConvSpec& spec) const { return ceil_div(pixels(spec), block_pixels()); }

int PointwiseTiling::weight_pitch() const { return static_cast<int>((block_k() + 1) * kRowBytes); }

std::int64_t PointwiseTiling::weights_first_byte() const { return std::int64_t{stages} * stage_bytes(); }

std::int64_t PointwiseTiling::bias_first_byte(const ConvSpec& spec) const {
  return weights_first_byte() + slab_slices(spec) * weight_pitch();
}

std::int64_t PointwiseTiling::barriers_first_byte(const ConvSpec& spec) const {
  return bias_first_byte(spec) + (keeps_bias(spec) ? 4 * block_k() : 0);
}

std::int64_t PointwiseTiling::shared_bytes(const ConvSpec& spec) const {
  return barriers_first_byte(spec) + (2 * stages + 1) * kBarrierBytes;
}

std::int64_t PointwiseTiling::partial_sum_stride(const ConvSpec& spec) const {
  return round_up(pixels(spec) * spec.weight.k, 64);
}

std::int64_t PointwiseTiling::partial_sum_bytes(const ConvSpec& spec) const {
  return splits == 1 ? 0 : 4 * splits * partial_sum_stride(spec);
}

}  // namespace jitconv::codegen
