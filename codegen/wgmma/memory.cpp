// What a block has: the map of its shared memory, how outputs are staged in it, registers.
#include <algorithm>
#include <array>
#include <numeric>

#include "codegen/arithmetic.h"
#include "codegen/wgmma/geometry.h"

namespace jitconv::codegen {
namespace {

constexpr std::int64_t kSwizzledBoxAlignment = 1024;  // bytes, where tensor maps copy to and from
constexpr std::int64_t kBarrierBytes = 8;
constexpr int kWarps = 8;  // that multiply
constexpr int kStagedChannels = 8;
constexpr int kConsumerChannels = 64;
constexpr int kMostConsumerRegisters = 192;  // what is left to loading warps must do for a step
constexpr int kMostSplitConsumerRegisters = 208;

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

std::int64_t WgmmaGeometry::slice_pitch() const {
  const std::int64_t own = run_pixels();
  if (!loads_vectors() || tiling_.pipeline.slices == 1) return own;
  // Eight lanes store 128 bytes: 8 / slices pixels, each in all its slices or in eight of them.
  const std::int64_t distance = tiling_.pipeline.slices < 8 ? 8 / tiling_.pipeline.slices : 1;
  return round_up(own - distance, 2 * distance) + distance;
}

std::int64_t WgmmaGeometry::phase_bytes_of_runs() const {
  if (tiling_.uses_im2col()) return round_up(run_pixels() * tiling_.pipeline.slices * kRowBytes, kSwizzledBoxAlignment);
  if (tiling_.uses_planes()) return parts() * chunk_channels() * kPartBytes;
  return tiling_.pipeline.slices * slice_pitch() * kRowBytes;
}

std::int64_t WgmmaGeometry::raw_first_byte() const { return round_up(weights_first_byte() + kept_weight_bytes(), 128); }

int WgmmaGeometry::wanted_registers() const {
  // Addresses and what an activation needs, besides accumulators and weights.
  const int others = problem().epilogue.activation == Activation::gelu_erf ? 80 : 72;
  const int stored = tiling_.tile.columns / 2 / 8 * 8 + others + unpacked_weight_registers();
  // Sums beside accumulators, and operands.
  constexpr int kOperands = 40;
  return tiling_.splits_operands() ? std::max(stored, tiling_.tile.columns + kOperands) : stored;
}

int WgmmaGeometry::most_consumer_registers() const {
  return tiling_.splits_operands() ? kMostSplitConsumerRegisters : kMostConsumerRegisters;
}

int WgmmaGeometry::consumer_registers() const { return std::min(wanted_registers(), most_consumer_registers()); }

bool WgmmaGeometry::registers_fit() const { return wanted_registers() <= most_consumer_registers(); }

int WgmmaGeometry::unpacked_weight_registers() const {
  return !multiplies_registers() ? 0 : static_cast<int>(round_up(units() / 2 * 4 + 8, 8));
}

int WgmmaGeometry::producer_registers() const {
  const int left = 3 * WgmmaTiling::kLaunchRegisters - 2 * consumer_registers();
  // Threads that only ask need no more than they have, and would wait for the others to give them away.
  return std::min(left, tiling_.copies_operands() ? WgmmaTiling::kLaunchRegisters : 240) / 8 * 8;
}

int WgmmaGeometry::load_registers() const {
  return producer_registers() - (loads_vectors() && problem().input.type == DataType::f32 ? 52 : 56);
}

bool WgmmaGeometry::stages_elements() const {
  return problem().output.type == DataType::f32 ||
         (tiling_.split_k == 1 && !problem().epilogue.residual && !tiling_.folds_columns());
}

int WgmmaGeometry::staged_bytes() const {
  return stages_elements() ? static_cast<int>(problem().output.element_bytes()) : 4;
}

bool WgmmaGeometry::stores_bulk() const {
  if (problem().output.layout() == Layout::nhwc || tiling_.tile.images > 0 || tiling_.folds_columns() ||
      (problem().epilogue.residual && tiling_.split_k == 1))
    return false;
  constexpr std::int64_t kLine = 128;
  if (staged_bytes() != 2 && plane() * staged_bytes() % kLine != 0) return false;
  // Runs at the ends of a plane may store vectors in part; some must lie between.
  return plane() >= (lead() == 0 ? tiling_.tile.window : 2 * tiling_.tile.window + sector_elements());
}

int WgmmaGeometry::store_width() const {
  const int vector = static_cast<int>(kRowBytes / written_bytes());
  // In y images lie a plane apart, among a run's positions image_positions().
  const bool aligned = plane() % vector == 0 && (tiling_.tile.images == 1 || image_positions() % vector == 0);
  return gap() == 0 && aligned ? vector : 1;
}

int WgmmaGeometry::staging_pitch() const {
  if (tiling_.stores_boxes()) return kConsumerChannels;  // swizzled
  // A multiple of 16 bytes, so that eight positions of a channel, which lanes store together, have no bank conflicts.
  if (problem().output.layout() == Layout::nhwc) return kConsumerChannels + 16 / staged_bytes();
  const int vector = 16 / staged_bytes(),
            least = static_cast<int>(ceil_div(staged_before() + tiling_.tile.columns + lead(), vector));
  return staging_pitch_vectors(staged_bytes(), /*sector_runs=*/lead() > 0, least) * vector;
}

int WgmmaGeometry::staged_before() const { return static_cast<int>(round_up(fold_reach(), kRowBytes / 4)); }

int WgmmaGeometry::store_columns() const {
  constexpr int kBytes = 16 << 10, kBlock = 16;  // shared memory of a consumer, and what a store from registers takes
  const int most = kBytes / (kConsumerChannels * staged_bytes());
  // Eight positions of floats are staged at a time, 16 of 16-bit outputs.
  if (tiling_.stores_boxes()) return equal_part(tiling_.tile.columns, most, staged_bytes() == 2 ? 16 : 8);
  const int rounds = static_cast<int>(ceil_div(tiling_.tile.columns, most));
  return static_cast<int>(round_up(ceil_div(tiling_.tile.columns, rounds), kBlock));
}

int WgmmaGeometry::store_vector() const { return static_cast<int>(std::gcd(problem().k, 16 / written_bytes())); }

std::int64_t WgmmaGeometry::box_bytes() const {
  return std::int64_t{store_columns()} * staging_pitch() * staged_bytes();
}

std::int64_t WgmmaGeometry::staging_bytes() const {
  if (tiling_.stores_boxes()) return 2 * tiling_.staged_boxes * box_bytes();
  const std::int64_t rows = problem().output.layout() == Layout::nhwc ? 2 * store_columns() : kWarps * kStagedChannels;
  return staged_bytes() * rows * staging_pitch();
}

std::int64_t WgmmaGeometry::weights_first_byte() const {
  return round_up(tiling_.pipeline.stages * stage_bytes(), 128);
}

std::int64_t WgmmaGeometry::staging_first_byte() const {
  const std::int64_t end =
      raw_first_byte() + (tiling_.converts_pixels() ? 4 * tiling_.producer.copies_ahead * raw_bytes() : 0);
  return round_up(end, tiling_.stores_boxes() ? kSwizzledBoxAlignment : 128);
}

std::int64_t WgmmaGeometry::zeros_first_byte() const { return staging_first_byte() + staging_bytes(); }

std::int64_t WgmmaGeometry::barriers_first_byte() const {
  return zeros_first_byte() + (has_zeros() ? tiling_.tile.columns * kRowBytes : 0);
}

std::int64_t WgmmaGeometry::shared_bytes() const {
  return barriers_first_byte() +
         ((tiling_.splits_im2col() ? 3 : 2) * tiling_.pipeline.stages + 4 * tiling_.producer.copies_ahead +
          (tiling_.keeps_weights() ? 1 : 0) + schedule_barriers()) *
             kBarrierBytes;
}

int WgmmaGeometry::schedule_barriers() const {
  switch (tiling_.schedule) {
    case WgmmaTiling::Schedule::cooperative:
      return 0;
    case WgmmaTiling::Schedule::pingpong:
      return 2;
    case WgmmaTiling::Schedule::sliced_k:
      return 4;
  }
  return 0;
}

}  // namespace jitconv::codegen
