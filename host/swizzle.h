// Where bytes of swizzled shared memory are. TMA and the tensor cores agree on it: they exchange pieces of
// 16 bytes by bits of their address, not by the number of a row, so that each may begin at another row.
#pragma once

#include <cstdint>

namespace jitconv::host {

inline constexpr std::uint32_t kSwizzlePiece = 16;

/// The offset in shared memory of what would be at `at` without a swizzle. `row_bytes`: 32, 64 or 128.
constexpr std::uint32_t swizzled(std::uint32_t at, std::uint32_t row_bytes) {
  return at ^ (at >> 7 & (row_bytes / kSwizzlePiece - 1)) * kSwizzlePiece;
}

}  // namespace jitconv::host
