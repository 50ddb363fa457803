// See registers.h.
#include "codegen/wgmma/registers.h"

#include <algorithm>

#include "codegen/arithmetic.h"

namespace jitconv::codegen {
namespace {

constexpr int kMostConsumerRegisters = 192;  // what is left to producer warps must do for a step
constexpr int kMostSplitConsumerRegisters = 208;
/// Where TMA brings pixels, and threads split them at most, in place.
constexpr int kMostPairConsumerRegisters = 224;

int most_consumer_registers(const WgmmaTiling& tiling) {
  if (tiling.f16_pairs && tiling.uses_im2col()) return kMostPairConsumerRegisters;
  return tiling.splits_operands() ? kMostSplitConsumerRegisters : kMostConsumerRegisters;
}

/// Registers of a consumer thread for weights that it multiplies from there.
int weight_registers(const WgmmaGeometry& geometry) {
  return !geometry.multiplies_registers() ? 0 : static_cast<int>(round_up(geometry.units() / 2 * 4 + 8, 8));
}

int wanted_registers(const WgmmaGeometry& geometry) {
  const WgmmaTiling& tiling = geometry.tiling();
  // Addresses and what an activation needs, besides accumulators and weights.
  const int others = geometry.problem().epilogue.activation == Activation::gelu_erf ? 80 : 72;
  const int stored = tiling.tile.columns / 2 / 8 * 8 + others + weight_registers(geometry);
  // Sums beside accumulators, and operands.
  constexpr int kOperands = 40;
  return tiling.splits_operands() ? std::max(stored, tiling.tile.columns + kOperands) : stored;
}

int producer_registers(const WgmmaTiling& tiling, int consumer_registers) {
  const int left = 3 * WgmmaTiling::kLaunchRegisters - 2 * consumer_registers;
  // Threads that only issue copies need no more than they have, and would wait for the others to release some.
  return std::min(left, tiling.copies_operands() ? WgmmaTiling::kLaunchRegisters : 240) / 8 * 8;
}

/// Registers of a producer thread besides what its loads bring.
int address_registers(const WgmmaGeometry& geometry) {
  if (!geometry.loads_vectors()) return 56;
  // A vector of several loads has an address and a predicate for each.
  if (geometry.load_bytes() < 16) return 60;
  return geometry.problem().input.type == DataType::f32 ? 52 : 56;
}

/// Registers that a load, of all channels of a step if they are no vectors, brings to a lane.
int registers_of_load(const WgmmaGeometry& geometry) {
  if (geometry.loads_vectors()) return geometry.load_bytes() == 2 ? 8 : 4;
  const bool float_pairs = geometry.pixels().loads_phase_pairs() && geometry.problem().input.type == DataType::f32;
  return geometry.chunk_channels() * (float_pairs ? 2 : 1);
}

}  // namespace

WgmmaRegisters::WgmmaRegisters(const WgmmaGeometry& geometry)
    : wanted_(wanted_registers(geometry)),
      consumer_(std::min(wanted_, most_consumer_registers(geometry.tiling()))),
      producer_(producer_registers(geometry.tiling(), consumer_)),
      for_loads_(producer_ - address_registers(geometry)),
      per_load_(registers_of_load(geometry)) {}

}  // namespace jitconv::codegen
