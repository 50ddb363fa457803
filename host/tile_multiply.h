// The arithmetic of one warpgroup multiplication (wgmma), on operands in core matrices, 8 rows of 16 bytes that follow
// one another, or in swizzled rows of up to 128 bytes. Products are exact, as fp32 has room for them. Hardware adds up
// all products of an instruction at once and truncates. So does this of TF32; of 16-bit types each sum is rounded to
// nearest, in order of k: equal for sums that fp32 holds exactly, not for others.
#pragma once

#include <cstdint>

namespace jitconv::host {

inline constexpr std::uint32_t kMultiplyRows = 64;
inline constexpr std::uint32_t kMostMultiplyColumns = 256;

enum class MultiplyType : std::uint8_t { tf32, f16, bf16 };

/// Elements of an operand's row, of 32 bytes: the k of one instruction.
constexpr std::uint32_t depth(MultiplyType type) { return type == MultiplyType::tf32 ? 8 : 16; }

/// Rows of 32 bytes. The halves of a row, 16 bytes each, of eight rows from r on, lie at half[] + r / 8 * step.
/// Swizzled: half[0] is where the pattern of the swizzle begins anew, the start of shared memory; eight rows would lie
/// at first + r / 8 * step in it, each `row_bytes` behind the one before, if pieces of 16 bytes were not exchanged.
/// MN-major, the k of an instruction are such rows, and what a row has no room for is in others, `next_rows` behind.
struct TileOperand {
  const char* half[2];
  std::uint32_t step;           // bytes from eight rows to the next eight
  std::uint32_t row_bytes = 0;  // 0: not swizzled
  std::uint32_t first = 0;
  std::uint32_t next_rows = 0;
  bool mn_major = false;
};

/// tile[64][columns] += a[64][k] * b[columns][k]. `columns` is a multiple of 8 up to kMostMultiplyColumns.
void multiply_tile(MultiplyType type, float* tile, std::uint32_t columns, const TileOperand& a, const TileOperand& b);

}  // namespace jitconv::host
