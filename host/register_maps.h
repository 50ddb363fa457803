// Which thread of a warpgroup holds which elements of a multiplication's tile and of an operand in registers. PTX ISA,
// "Register Fragments" of wgmma.mma_async.
#pragma once

#include <cstdint>
#include <cstring>

#include "host/warpgroups.h"

namespace jitconv::host {

/// Whether two neighbouring sums have equal bits, NaNs included.
inline bool same_bits(const float* a, const float* b) {
  std::uint64_t bits_of_a = 0, bits_of_b = 0;
  std::memcpy(&bits_of_a, a, sizeof(bits_of_a));
  std::memcpy(&bits_of_b, b, sizeof(bits_of_b));
  return bits_of_a == bits_of_b;
}

/// Calls `visit(thread, index, tile offset)` for every pair of neighbouring sums: lane l of warp w holds of row
/// 16 w + l / 4 + 8 i, columns 8 j + 2 (l % 4) + {0, 1}, in sum[4 j + 2 i + {0, 1}].
template <typename Visit>
void for_each_pair(std::uint32_t accumulators, Visit visit) {
  const std::uint32_t columns = 2 * accumulators;
  for (std::uint32_t thread = 0; thread < kWarpgroupThreads; ++thread) {
    const std::uint32_t row = 16 * (thread / 32) + thread % 32 / 4, column = 2 * (thread % 4);
    for (std::uint32_t j = 0; j < columns / 8; ++j)
      for (std::uint32_t i = 0; i < 2; ++i) visit(thread, 4 * j + 2 * i, (row + 8 * i) * columns + 8 * j + column);
  }
}

inline constexpr std::uint32_t kHalfBytes = kMultiplyRows * 16;  // of an operand's rows

/// Calls `visit(thread, word, offset)` for every word of an operand in registers, with its place among the operand's
/// rows, half by half: lane l of warp w holds of row 16 w + l / 4 + 8 (word % 2), column l % 4 of half word / 2.
template <typename Visit>
void for_each_register(Visit visit) {
  for (std::uint32_t thread = 0; thread < kWarpgroupThreads; ++thread) {
    const std::uint32_t row = 16 * (thread / 32) + thread % 32 / 4, column = thread % 4;
    for (std::uint32_t word = 0; word < 4; ++word)
      visit(thread, word, word / 2 * kHalfBytes + (row + word % 2 * 8) * 16 + column * 4);
  }
}

}  // namespace jitconv::host
