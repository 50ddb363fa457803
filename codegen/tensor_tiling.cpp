// What follows from a TensorTiling and the convolution: the grid of positions, runs and what they need of x, steps,
// tiles. Where that lies in memory is in tensor_memory.cpp, what kernels before the convolution make in
// tensor_packing.cpp.
#include "codegen/tensor_tiling.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "codegen/arithmetic.h"
#include "codegen/source.h"
#include "codegen/tiling.h"

namespace jitconv::codegen {
namespace {

constexpr std::int64_t kBoxAlignment = 128;  // bytes, where tensor maps copy to

/// The number of residues modulo the stride, from 0 to the largest that an offset of the filter has.
int residues(std::int64_t filter_taps, std::int64_t dilation, std::int64_t stride) {
  std::int64_t largest = 0;
  for (std::int64_t tap = 0; tap < filter_taps; ++tap) largest = std::max(largest, tap * dilation % stride);
  return static_cast<int>(largest + 1);
}

/// Positions from one row (or image) to the next, of `outputs` whose last tap lies `span` pixels behind the first: the
/// padding behind one is the padding before the next. `extent` pixels, `before` of padding.
std::int64_t shared_padding_pitch(std::int64_t outputs, std::int64_t extent, std::int64_t before, std::int64_t span,
                                  std::int64_t stride) {
  const std::int64_t behind = (outputs - 1) * stride + span - before - (extent - 1);
  return std::min(outputs + span / stride, std::max(outputs, ceil_div(extent + std::max(before, behind), stride)));
}

}  // namespace

std::int64_t TensorTiling::plane(const ConvSpec& spec) {
  const TensorShape out = output_shape(spec);
  return out.h * out.w;
}

int TensorTiling::slice_channels(const ConvSpec& spec) {
  return static_cast<int>(kRowBytes / element_bytes(spec.dtype));
}

std::int64_t TensorTiling::row_reach(const ConvSpec& spec) {
  return (spec.weight.s - 1) * spec.dilation.w / spec.stride.w;
}

bool TensorTiling::loads_pairs(const ConvSpec& spec) {
  const std::int64_t q = output_shape(spec).w;
  return element_bytes(spec.dtype) == 2 && spec.input_layout == Layout::nchw && spec.stride.w == 1 &&
         spec.input.w % 2 == 0 && q % 2 == 0 && row_reach(spec) % 2 == 0;
}

bool TensorTiling::loads_vectors(const ConvSpec& spec) {
  return spec.input_layout == Layout::nhwc && spec.weight.c % slice_channels(spec) == 0;
}

std::int64_t TensorTiling::load_items(const ConvSpec& spec) const {
  if (loads_vectors(spec)) return ceil_div(run_pixels(spec) * slices, kWarpSize);
  if (!loads_pairs(spec)) return ceil_div(run_pixels(spec), kWarpSize);
  return ceil_div(run_pixels(spec) + spec.padding.left % 2, 2 * kWarpSize);
}

int TensorTiling::phase_of(const ConvSpec& spec, std::int64_t s) {
  return static_cast<int>(s * spec.dilation.w % spec.stride.w);
}

int TensorTiling::phases(const ConvSpec& spec) { return residues(spec.weight.s, spec.dilation.w, spec.stride.w); }

int TensorTiling::row_phases(const ConvSpec& spec) { return residues(spec.weight.r, spec.dilation.h, spec.stride.h); }

std::int64_t TensorTiling::tap_place(const ConvSpec& spec, int tap) {
  const std::int64_t r = tap / spec.weight.s, s = tap % spec.weight.s;
  return r * spec.dilation.h * pitch(spec) + s * spec.dilation.w / spec.stride.w;
}

std::vector<int> TensorTiling::tap_order(const ConvSpec& spec) const {
  std::vector<int> order(static_cast<std::size_t>(taps(spec)));
  std::iota(order.begin(), order.end(), 0);
  const auto place = [&spec](int tap) { return std::pair{phase_of(spec, tap % spec.weight.s), tap_place(spec, tap)}; };
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return place(a) < place(b); });
  return order;
}

int TensorTiling::sector_elements(const ConvSpec& spec) {
  return spec.output_layout == Layout::nhwc ? 1 : static_cast<int>(32 / element_bytes(spec.dtype));
}

int TensorTiling::slack(const ConvSpec& spec) {
  const std::int64_t sector = sector_elements(spec);
  return static_cast<int>(sector - std::gcd(plane(spec), sector));
}

int TensorTiling::row_ends(const ConvSpec& spec) const {
  if (images > 0 || stores_boxes() || gap(spec) == 0) return 0;  // nothing is left out between rows
  const std::int64_t q = output_shape(spec).w, outputs = std::min<std::int64_t>(window + slack(spec), plane(spec));
  // Runs start at multiples of the window: if rows are whole windows, or windows whole rows, none starts inside a row.
  if (slack(spec) == 0 && q % window == 0) return 0;
  if (slack(spec) == 0 && window % q == 0) return static_cast<int>(outputs / q) - 1;
  return static_cast<int>(ceil_div(outputs - 1, q));
}

std::int64_t TensorTiling::pitch(const ConvSpec& spec) {
  const std::int64_t span = (spec.weight.s - 1) * spec.dilation.w;
  const std::int64_t shared =
      shared_padding_pitch(output_shape(spec).w, spec.input.w, spec.padding.left, span, spec.stride.w);
  return loads_pairs(spec) ? round_up(shared, 2) : shared;
}

std::int64_t TensorTiling::image_rows(const ConvSpec& spec) const {
  // A step that has one filter row has its rows only, whatever the stride; one that has all has a stride of 1.
  const std::int64_t span = (filter_rows - 1) * spec.dilation.h;
  return shared_padding_pitch(output_shape(spec).h, spec.input.h, spec.padding.top, span, 1);
}

std::int64_t TensorTiling::reach(const ConvSpec& spec) const {
  return row_reach(spec) + (filter_rows - 1) * spec.dilation.h * pitch(spec);
}

bool TensorTiling::can_walk_pixels(const ConvSpec& spec) const {
  if (slices == 1 || run_pixels(spec) > TensorMapShape::kMostWalkedPixels) return false;
  if (!transposes_pixels() && !loads_vectors(spec)) return false;
  if (spec.groups > 1 && spec.weight.c % chunk_channels(spec) != 0) return false;
  const std::array<std::int64_t, 2> lower = walk_lower(spec), upper = walk_upper(spec);
  return std::max(spec.stride.h, spec.stride.w) <= TensorMapShape::kMostWalkedStride &&
         std::max((spec.weight.r - 1) * spec.dilation.h, std::int64_t{phases(spec) - 1}) <=
             TensorMapShape::kMostWalkedOffset &&
         std::min({lower[0], lower[1], upper[0], upper[1]}) >= TensorMapShape::kLeastCorner &&
         std::max({lower[0], lower[1], upper[0], upper[1]}) <= TensorMapShape::kMostCorner;
}

std::array<std::int64_t, 2> TensorTiling::walk_upper(const ConvSpec& spec) const {
  const auto [left, top] = walk_lower(spec);
  return {left + (pitch(spec) - 1) * spec.stride.w + 1 - spec.input.w,
          top + (image_rows(spec) - 1) * spec.stride.h + 1 - spec.input.h};
}

std::int64_t TensorTiling::run_row(const ConvSpec& spec) const {
  const std::int64_t outputs = output_shape(spec).w;
  return stores_boxes() && !boxes_cross_rows(spec) ? round_up(outputs, std::int64_t{columns}) : outputs;
}

bool TensorTiling::can_store_boxes(const ConvSpec& spec) const {
  if (spec.output_layout == Layout::nchw || images > 0 || splits > 1 || copies_pixels() || spec.epilogue.residual)
    return false;
  const TensorShape out = output_shape(spec);
  // Rows are whole, and a tile has no channels of another group.
  if (spec.weight.k / spec.groups % (spec.groups > 1 ? block_k : box_row_channels(spec)) != 0) return false;
  return out.h * out.w * spec.weight.k * element_bytes(spec.dtype) < TensorMapShape::kMostStride &&
         out.n * out.h <= INT32_MAX && out.h * run_row(spec) <= INT32_MAX - kBehindPlane;
}

bool TensorTiling::copies_fit(const ConvSpec& spec) const {
  if (spec.input_layout != Layout::nchw) return false;
  const std::int64_t vector = kRowBytes / element_bytes(spec.dtype), input_plane = spec.input.h * spec.input.w;
  if (images == 0) return input_plane % vector == 0;
  // Planes of consecutive channels are one copy.
  return spec.weight.c * input_plane % vector == 0 && slice_channels(spec) * input_plane % vector == 0;
}

bool TensorTiling::maps_pixels(const ConvSpec& spec) const {
  // For 16-bit tensors, larger tiles with a copy per channel are faster. Planes are counted with 32 bits.
  return copies_pixels() && images == 0 && spec.dtype == DataType::f32 && spec.input.n * spec.input.c <= INT32_MAX;
}

bool TensorTiling::copies_rows(const ConvSpec& spec) const {
  if (!maps_pixels(spec) || spec.weight.r > 1 || spec.stride.h == 1 || spec.padding.top % spec.stride.h != 0)
    return false;
  return spec.input.w * element_bytes(spec.dtype) % kRowBytes == 0 &&
         std::max(spec.input.w, raw_rows(spec)) <= TensorMapShape::kMostBox;
}

bool TensorTiling::copies_boxes(const ConvSpec& spec) const {
  return copies_rows(spec) || (maps_pixels(spec) && raw_elements(spec) + kRowBytes / 4 - 1 <= TensorMapShape::kMostBox);
}

std::int64_t TensorTiling::raw_rows(const ConvSpec& spec) const {
  // A run may start at the end of a row.
  return (output_shape(spec).w - 1 + run_pixels(spec) - 1) / pitch(spec) + 1;
}

std::int64_t TensorTiling::raw_elements(const ConvSpec& spec) const {
  // Of the positions of a run, as many rows as make most elements; a row may start or end in the padding.
  const std::int64_t last = run_pixels(spec) - 1, rows = (pitch(spec) - 1 + last) / pitch(spec);
  const std::int64_t more_of_row = spec.stride.h * spec.input.w - pitch(spec) * spec.stride.w;
  return std::max<std::int64_t>(0, rows * more_of_row) + last * spec.stride.w + phases(spec) +
         2 * std::max<std::int64_t>(0, pitch(spec) * spec.stride.w - spec.input.w);
}

std::int64_t TensorTiling::raw_pitch(const ConvSpec& spec) const {
  const std::int64_t plane_elements = spec.input.h * spec.input.w, vector = kRowBytes / element_bytes(spec.dtype);
  if (images > 0) return plane_elements;
  // Boxes start at vectors; other copies end at them, too.
  if (!copies_boxes(spec)) return std::min(round_up(raw_elements(spec), vector) + 2 * vector, plane_elements);
  if (copies_rows(spec)) return raw_rows(spec) * spec.input.w;
  return std::min(round_up(raw_elements(spec) + vector - 1, vector), plane_elements);
}

std::int64_t TensorTiling::raw_run_elements(const ConvSpec& spec) const {
  const std::int64_t elements = std::max(images, 1) * chunk_channels(spec) * raw_pitch(spec);
  return copies_boxes(spec) ? round_up(elements, kBoxAlignment / element_bytes(spec.dtype)) : elements;
}

std::int64_t TensorTiling::units(const ConvSpec& spec) const { return round_up(taps(spec) * slices, 2); }

std::int64_t TensorTiling::steps(const ConvSpec& spec) const {
  return ceil_div(spec.weight.c, chunk_channels(spec)) * (spec.weight.r / filter_rows);
}

std::int64_t TensorTiling::steps_of_split(const ConvSpec& spec) const { return ceil_div(steps(spec), splits); }

std::int64_t TensorTiling::tiles_k(const ConvSpec& spec) const {
  return ceil_div(spec.weight.k / spec.groups, block_k);
}

std::int64_t TensorTiling::tiles_of_plane(const ConvSpec& spec) const {
  return ceil_div(output_shape(spec).h * run_row(spec), std::int64_t{runs()} * window);
}

std::int64_t TensorTiling::tiles_of_images(const ConvSpec& spec) const {
  return images > 0 ? ceil_div(spec.input.n, std::int64_t{runs()} * images) : spec.input.n * tiles_of_plane(spec);
}

std::int64_t TensorTiling::tiles(const ConvSpec& spec) const {
  return spec.groups * tiles_k(spec) * tiles_of_images(spec) * splits;
}

bool TensorTiling::can_take_raw_weights(const ConvSpec& spec) const {
  const std::int64_t all_taps = taps(spec), row = spec.weight.c * all_taps;
  if (filter_rows != spec.weight.r || row * element_bytes(spec.dtype) % kRowBytes != 0 || row > INT32_MAX) return false;
  if (all_taps == 1) return slices == 8;  // rows are swizzled
  if (spec.dtype != DataType::f32 || spec.input_layout != Layout::nchw) return false;
  // An even number of taps, or rows of whole lines, would cause bank conflicts.
  return all_taps % 2 != 0 && (slices == 2 || slices == 4) &&
         chunk_channels(spec) * all_taps <= TensorMapShape::kMostBox;
}

std::int64_t TensorTiling::channel_at(const ConvSpec& spec, std::int64_t place) const {
  if (!multiplies_registers(spec)) return place;
  // Lane l holds neighbours, of each multiplication's eight places two, l % 4 and l % 4 + 4.
  const std::int64_t chunk = place / chunk_channels(spec) * chunk_channels(spec);
  return chunk + place % 4 * lane_channels(spec) + (place - chunk) / 8 * 2 + place / 4 % 2;
}

bool TensorTiling::can_share_steps(const ConvSpec& spec) const {
  const std::int64_t last_split = steps(spec) - (splits - 1) * steps_of_split(spec);
  return spec.output_layout == Layout::nchw && staged_bytes(spec) == 4 && last_split >= 2;
}

std::int64_t TensorTiling::partial_sum_stride(const ConvSpec& spec) const {
  return round_up(spec.input.n * spec.weight.k * plane(spec), 64);
}

std::int64_t TensorTiling::partial_sum_bytes(const ConvSpec& spec) const {
  return splits == 1 ? 0 : 4 * splits * partial_sum_stride(spec);
}

}  // namespace jitconv::codegen
