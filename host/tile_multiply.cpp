// Compiled with -O3 in every configuration: this is where the CPU time of a tensor-core kernel goes. Operands are
// unpacked to floats once, b transposed, so that the innermost loop runs along columns.
#include "host/tile_multiply.h"

#include <bit>
#include <cstring>

#include "host/swizzle.h"

namespace jitconv::host {
namespace {

constexpr std::uint32_t kChunk = 8;  // columns that are summed up in registers

float from_tf32(const char* at) {
  std::uint32_t bits;
  std::memcpy(&bits, at, 4);
  return std::bit_cast<float>(bits & ~0x1fffu);  // the tensor cores do not look at the rest
}

float from_bf16(const char* at) {
  std::uint16_t bits;
  std::memcpy(&bits, at, 2);
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

float from_f16(const char* at) {
  std::uint16_t bits;
  std::memcpy(&bits, at, 2);
  const std::uint32_t sign = (bits & 0x8000u) << 16, magnitude = bits & 0x7fffu;
  if (magnitude >= 0x7c00u) return std::bit_cast<float>(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude << 13) * 0x1p112f));
}

/// unswizzled() where k runs over rows in memory, of 16-bit elements.
void transpose(const TileOperand& operand, std::uint32_t count, char* rows) {
  const std::uint32_t of_row = operand.row_bytes / 2;
  for (std::uint32_t k = 0; k < 16; ++k) {
    char* const to = rows + k / 8 * count * kSwizzlePiece + k % 8 * 2;
    for (std::uint32_t row = 0; row < count; ++row) {
      const std::uint32_t at = operand.first + row / of_row * operand.next_rows + k / 8 * operand.step +
                               k % 8 * operand.row_bytes + row % of_row * 2;
      std::memcpy(to + row * kSwizzlePiece, operand.half[0] + swizzled(at, operand.row_bytes), 2);
    }
  }
}

/// The operand's rows as one that is not swizzled has them, in `rows`.
TileOperand unswizzled(const TileOperand& operand, std::uint32_t count, char* rows) {
  constexpr std::uint32_t kPiece = kSwizzlePiece;
  if (operand.mn_major) {
    transpose(operand, count, rows);
    return {{rows, rows + count * kPiece}, 8 * kPiece};
  }
  for (std::uint32_t row = 0; row < count; ++row) {
    const std::uint32_t at = operand.first + row / 8 * operand.step + row % 8 * operand.row_bytes;
    for (std::uint32_t half = 0; half < 2; ++half) {
      std::memcpy(rows + (half * count + row) * kPiece,
                  operand.half[0] + swizzled(at + half * kPiece, operand.row_bytes), kPiece);
    }
  }
  return {{rows, rows + count * kPiece}, 8 * kPiece};
}

template <std::uint32_t kBytes>
const char* element(const TileOperand& operand, std::uint32_t row, std::uint32_t k) {
  constexpr std::uint32_t kHalf = 16 / kBytes;
  return operand.half[k / kHalf] + row / 8 * operand.step + row % 8 * 16 + k % kHalf * kBytes;
}

template <std::uint32_t kBytes, float (*kFrom)(const char*)>
void multiply(float* __restrict tile, std::uint32_t columns, const TileOperand& a, const TileOperand& b) {
  constexpr std::uint32_t kDepth = 32 / kBytes;
  static thread_local float left[kMultiplyRows][kDepth];
  static thread_local float right[kDepth][kMostMultiplyColumns];
  for (std::uint32_t row = 0; row < kMultiplyRows; ++row)
    for (std::uint32_t k = 0; k < kDepth; ++k) left[row][k] = kFrom(element<kBytes>(a, row, k));
  for (std::uint32_t column = 0; column < columns; ++column)
    for (std::uint32_t k = 0; k < kDepth; ++k) right[k][column] = kFrom(element<kBytes>(b, column, k));
  for (std::uint32_t row = 0; row < kMultiplyRows; ++row) {
    for (std::uint32_t first = 0; first < columns; first += kChunk) {
      float* const to = tile + row * columns + first;
      float sum[kChunk];
      for (std::uint32_t i = 0; i < kChunk; ++i) sum[i] = to[i];
      for (std::uint32_t k = 0; k < kDepth; ++k)
        for (std::uint32_t i = 0; i < kChunk; ++i) sum[i] += left[row][k] * right[k][first + i];
      for (std::uint32_t i = 0; i < kChunk; ++i) to[i] = sum[i];
    }
  }
}

}  // namespace

void multiply_tile(MultiplyType type, float* tile, std::uint32_t columns, const TileOperand& a, const TileOperand& b) {
  if (a.row_bytes != 0 || b.row_bytes != 0) {
    static thread_local char left[kMultiplyRows * 32], right[kMostMultiplyColumns * 32];
    return multiply_tile(type, tile, columns, a.row_bytes != 0 ? unswizzled(a, kMultiplyRows, left) : a,
                         b.row_bytes != 0 ? unswizzled(b, columns, right) : b);
  }
  switch (type) {
    case MultiplyType::tf32:
      return multiply<4, from_tf32>(tile, columns, a, b);
    case MultiplyType::f16:
      return multiply<2, from_f16>(tile, columns, a, b);
    case MultiplyType::bf16:
      return multiply<2, from_bf16>(tile, columns, a, b);
  }
}

}  // namespace jitconv::host
