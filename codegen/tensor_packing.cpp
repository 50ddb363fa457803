// What kernels before a convolution of the tensor family make of weights and pixels, and how they share the work.
#include <algorithm>

#include "codegen/arithmetic.h"
#include "codegen/tensor_tiling.h"

namespace jitconv::codegen {
namespace {

/// Of one axis of x, and what its taps and outputs are apart.
struct Axis {
  std::int64_t &extent, &before, &after, &stride, &dilation;
};

/// Leaves of the axis what `outputs` of `taps` taps meet, if that is every stride-th place of it.
void keep_one_residue(Axis axis, std::int64_t taps, std::int64_t outputs) {
  if (axis.stride == 1 || (taps > 1 && axis.dilation % axis.stride != 0)) return;
  const std::int64_t dilation = taps > 1 ? axis.dilation / axis.stride : 1,
                     first = positive_modulo(-axis.before, axis.stride);
  const std::int64_t before = (axis.before + first) / axis.stride, met = outputs + (taps - 1) * dilation - before;
  const std::int64_t extent = std::min(ceil_div(axis.extent - first, axis.stride), met);
  if (axis.extent <= first || extent < 1) return;  // taps meet nothing but padding
  axis.extent = extent, axis.before = before, axis.after = met - extent, axis.stride = 1, axis.dilation = dilation;
}

}  // namespace

ConvSpec TensorTiling::convolved_spec(const ConvSpec& spec) const {
  if (!transposes_pixels()) return spec;
  const TensorShape out = output_shape(spec);
  ConvSpec convolved = spec;
  convolved.input_layout = Layout::nhwc;
  keep_one_residue(
      {convolved.input.h, convolved.padding.top, convolved.padding.bottom, convolved.stride.h, convolved.dilation.h},
      spec.weight.r, out.h);
  keep_one_residue(
      {convolved.input.w, convolved.padding.left, convolved.padding.right, convolved.stride.w, convolved.dilation.w},
      spec.weight.s, out.w);
  return convolved;
}

std::int64_t TensorTiling::pixel_slices(const ConvSpec& spec) { return ceil_div(spec.input.c, slice_channels(spec)); }

TensorTiling::Transposition TensorTiling::transposition(const ConvSpec& spec) {
  // Lines of 128 bytes of a pixel, if it has as many.
  constexpr int kRows = 512, kMostSlices = 8;
  int slices = kMostSlices;
  while (slices / 2 >= pixel_slices(spec)) slices /= 2;
  return {kRows / slices, slices};
}

std::int64_t TensorTiling::packed_pixel_bytes(const ConvSpec& spec) const {
  if (!transposes_pixels()) return 0;
  return round_up(spec.input.n * spec.input.h * spec.input.w * pixel_slices(spec) * kRowBytes, 256);
}

std::int64_t TensorTiling::packed_slices(const ConvSpec& spec) const {
  return ceil_div(spec.weight.c, chunk_channels(spec)) * slices;
}

std::int64_t TensorTiling::piece_words(const ConvSpec& spec, const Packing& packing) {
  return packing.slices * spec.weight.r * spec.weight.s * (kRowBytes / 4);
}

std::int64_t TensorTiling::piece_pitch(const ConvSpec& spec, const Packing& packing) {
  // An odd number: lanes that read the same place of 32 output channels' pieces meet in no bank.
  return piece_words(spec, packing) + 1;
}

std::int64_t TensorTiling::packing_bytes(const ConvSpec& spec, const Packing& packing) {
  return packing.channels * piece_pitch(spec, packing) * 4;
}

std::int64_t TensorTiling::packing_blocks(const ConvSpec& spec, const Packing& packing) const {
  return spec.groups * tiles_k(spec) * (block_k / packing.channels) * ceil_div(packed_slices(spec), packing.slices);
}

TensorTiling::Packing TensorTiling::packing(const ConvSpec& spec) const {
  // Measured on an H200: many short blocks are better than long pieces, down to about two sectors.
  constexpr std::int64_t kFewestBlocks = 1024, kShortestPiece = 64;
  Packing packing;
  while (packing.channels > 1 && packing_bytes(spec, packing) > kMostPackingBytes) packing.channels /= 2;
  for (Packing longer = packing; longer.slices < packed_slices(spec); packing = longer) {
    longer.slices *= 2;
    const bool too_few =
        packing_blocks(spec, longer) < kFewestBlocks && 4 * piece_words(spec, packing) >= kShortestPiece;
    if (packing_bytes(spec, longer) > kMostPackingBytes || too_few) break;
  }
  return packing;
}

std::int64_t TensorTiling::packed_rows(const ConvSpec& spec) const {
  if (!packs_weights()) return 0;
  return spec.groups * tiles_k(spec) * steps(spec) * units(spec) * block_k;
}

std::int64_t TensorTiling::packed_weight_bytes(const ConvSpec& spec) const {
  return round_up(packed_rows(spec) * kRowBytes, 256);
}

}  // namespace jitconv::codegen
