// What a block of the tensor family has: the map of its shared memory, how outputs are staged in it, registers.
#include <algorithm>
#include <array>
#include <numeric>

#include "codegen/arithmetic.h"
#include "codegen/tensor_tiling.h"
#include "codegen/tiling.h"

namespace jitconv::codegen {
namespace {

constexpr std::int64_t kSwizzledBoxAlignment = 1024;  // bytes, where tensor maps copy to and from
constexpr std::int64_t kBarrierBytes = 8;
constexpr int kWarps = 8;  // that multiply
constexpr int kStagedChannels = 8;
constexpr int kConsumerChannels = 64;
constexpr int kMostConsumerRegisters = 192;  // what is left to loading warps must do for a step

/// Of `columns`, the largest part of `unit` and its multiples that is no larger than `wanted`, or, if that is less than
/// half of it, the smallest up to twice as large; 0 if there is none.
int equal_part(int columns, int wanted, int unit) {
  for (int part = wanted; part >= unit; part -= unit)
    if (columns % part == 0 && (part == columns || 2 * part >= wanted)) return part;
  for (int part = wanted + unit; part <= 2 * wanted; part += unit)
    if (columns % part == 0) return part;
  return 0;
}

}  // namespace

std::int64_t TensorTiling::slice_pitch(const ConvSpec& spec) const {
  const std::int64_t own = run_pixels(spec);
  if (!loads_vectors(spec) || slices == 1) return own;
  // Eight lanes store 128 bytes: 8 / slices pixels, each in all its slices or in eight of them.
  const std::int64_t distance = slices < 8 ? 8 / slices : 1;
  return round_up(own - distance, 2 * distance) + distance;
}

std::int64_t TensorTiling::phase_bytes(const ConvSpec& spec) const {
  if (walks_pixels()) return round_up(run_pixels(spec) * slices * kRowBytes, kSwizzledBoxAlignment);
  return slices * slice_pitch(spec) * kRowBytes;
}

std::int64_t TensorTiling::raw_bytes(const ConvSpec& spec) const {
  return round_up(runs() * raw_run_elements(spec) * element_bytes(spec.dtype), kRowBytes);
}

std::int64_t TensorTiling::raw_first_byte(const ConvSpec& spec) const {
  return round_up(weights_first_byte(spec) + kept_weight_bytes(spec), 128);
}

std::int64_t TensorTiling::weights_in_stage(const ConvSpec& spec) const {
  return round_up(runs() * run_bytes(spec), packs_weights() ? kRowBytes : kSwizzledBoxAlignment);
}

int TensorTiling::wanted_registers(const ConvSpec& spec) const {
  // Addresses and what an activation needs, besides accumulators and weights.
  const int others = spec.epilogue.activation == Activation::gelu_erf ? 80 : 72;
  return columns / 2 / 8 * 8 + others + raw_weight_registers(spec);
}

int TensorTiling::consumer_registers(const ConvSpec& spec) const {
  return std::min(wanted_registers(spec), kMostConsumerRegisters);
}

bool TensorTiling::registers_fit(const ConvSpec& spec) const {
  return wanted_registers(spec) <= kMostConsumerRegisters;
}

int TensorTiling::raw_weight_registers(const ConvSpec& spec) const {
  return !multiplies_registers(spec) ? 0 : static_cast<int>(round_up(units(spec) / 2 * 4 + 8, 8));
}

int TensorTiling::loader_registers(const ConvSpec& spec) const {
  const int left = 3 * kLaunchRegisters - 2 * consumer_registers(spec);
  // Threads that only ask need no more than they have, and would wait for the others to give them away.
  return std::min(left, walks_pixels() ? kLaunchRegisters : 240) / 8 * 8;
}

int TensorTiling::staged_bytes(const ConvSpec& spec) const {
  return stages_elements(spec) ? static_cast<int>(element_bytes(spec.dtype)) : 4;
}

bool TensorTiling::stores_bulk(const ConvSpec& spec) const {
  if (spec.output_layout == Layout::nhwc || images > 0 || (spec.epilogue.residual && splits == 1)) return false;
  constexpr std::int64_t kLine = 128;
  if (staged_bytes(spec) != 2 && plane(spec) * staged_bytes(spec) % kLine != 0) return false;
  // Runs at the ends of a plane may store vectors in part; some must lie between.
  return plane(spec) >= (lead(spec) == 0 ? window : 2 * window + sector_elements(spec));
}

int TensorTiling::store_width(const ConvSpec& spec) const {
  const int vector = static_cast<int>(kRowBytes / written_bytes(spec));
  // In y images lie a plane apart, among a run's positions image_positions().
  const bool aligned = plane(spec) % vector == 0 && (images == 1 || image_positions(spec) % vector == 0);
  return gap(spec) == 0 && aligned ? vector : 1;
}

int TensorTiling::staging_pitch(const ConvSpec& spec) const {
  if (stores_boxes()) return kConsumerChannels;  // swizzled
  // A multiple of 16 bytes, so that eight positions of a channel, which lanes store together, meet in no bank.
  if (spec.output_layout == Layout::nhwc) return kConsumerChannels + 16 / staged_bytes(spec);
  const std::int64_t sector = sector_elements(spec), late = lead(spec) == 0 ? 0 : plane(spec) % sector;
  const int bytes = staged_bytes(spec), vector = 16 / bytes;
  // Lanes store pairs of outputs, 128 bytes at a time: four channels of four floats' pairs, eight of 16-bit pairs.
  const int channels = 128 / (8 * bytes);
  int best = 0, least = kWarpSize + 1;
  for (int i = 0, pitch = static_cast<int>(round_up(columns + lead(spec), vector)); i < 8; ++i, pitch += vector) {
    int meet = 0;
    for (int first = 0; first < 8; first += channels) {
      std::array<int, 32> lanes{};
      for (int channel = first; channel < first + channels; ++channel)
        for (int word = 0; word < 2 * bytes; ++word) {
          const std::int64_t place = (channel * pitch - positive_modulo(-channel * late, sector)) * bytes / 4 + word;
          meet = std::max(meet, ++lanes[static_cast<std::size_t>(positive_modulo(place, 32))]);
        }
    }
    if (meet < least) best = pitch, least = meet;
  }
  return best;
}

int TensorTiling::store_columns(const ConvSpec& spec) const {
  constexpr int kBytes = 16 << 10, kBlock = 16;  // shared memory of a consumer, and what a store from registers takes
  const int most = kBytes / (kConsumerChannels * staged_bytes(spec));
  // Eight positions of floats are staged at a time, 16 of 16-bit outputs.
  if (stores_boxes()) return equal_part(columns, most, staged_bytes(spec) == 2 ? 16 : 8);
  const int rounds = static_cast<int>(ceil_div(columns, most));
  return static_cast<int>(round_up(ceil_div(columns, rounds), kBlock));
}

int TensorTiling::store_vector(const ConvSpec& spec) const {
  return static_cast<int>(std::gcd(spec.weight.k / spec.groups, 16 / written_bytes(spec)));
}

std::int64_t TensorTiling::box_bytes(const ConvSpec& spec) const {
  return std::int64_t{store_columns(spec)} * staging_pitch(spec) * staged_bytes(spec);
}

std::int64_t TensorTiling::staging_bytes(const ConvSpec& spec) const {
  if (stores_boxes()) return 2 * staged_boxes * box_bytes(spec);
  const std::int64_t rows = spec.output_layout == Layout::nhwc ? 2 * store_columns(spec) : kWarps * kStagedChannels;
  return staged_bytes(spec) * rows * staging_pitch(spec);
}

std::int64_t TensorTiling::weights_first_byte(const ConvSpec& spec) const {
  return round_up(stages * stage_bytes(spec), 128);
}

std::int64_t TensorTiling::staging_first_byte(const ConvSpec& spec) const {
  const std::int64_t end = raw_first_byte(spec) + (copies_pixels() ? 4 * copies_ahead * raw_bytes(spec) : 0);
  return round_up(end, stores_boxes() ? kSwizzledBoxAlignment : 128);
}

std::int64_t TensorTiling::zeros_first_byte(const ConvSpec& spec) const {
  return staging_first_byte(spec) + staging_bytes(spec);
}

std::int64_t TensorTiling::barriers_first_byte(const ConvSpec& spec) const {
  return zeros_first_byte(spec) + (has_zeros(spec) ? columns * kRowBytes : 0);
}

std::int64_t TensorTiling::shared_bytes(const ConvSpec& spec) const {
  return barriers_first_byte(spec) +
         (2 * stages + 4 * copies_ahead + (resident ? 1 : 0) + share_barriers()) * kBarrierBytes;
}

}  // namespace jitconv::codegen
