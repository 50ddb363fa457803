// Compiled with -O3 in every configuration: this is where the CPU time of a tensor-core kernel goes. Operands are
// unpacked to floats once, b transposed, so that the innermost loop runs along columns.
#include "host/tile_multiply.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "host/swizzle.h"

namespace jitconv::host {
namespace {

constexpr std::uint32_t kChunk = 8;          // columns that are summed up in registers
constexpr std::uint32_t kNaN = 0x7fffffffu;  // whatever made it
constexpr int kAlignedBits = 25;             // behind the first of the largest addend, that an H200 adds

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

/// Operands of one instruction, unpacked.
template <std::uint32_t kDepth>
struct Operands {
  float left[kMultiplyRows][kDepth];
  float right[kDepth][kMostMultiplyColumns];
};

/// Sums of eight columns, each product rounded in turn.
template <std::uint32_t kDepth>
void add_rounded(float* __restrict to, const Operands<kDepth>& operands, std::uint32_t row, std::uint32_t first) {
  float sum[kChunk];
  for (std::uint32_t i = 0; i < kChunk; ++i) sum[i] = to[i];
  for (std::uint32_t k = 0; k < kDepth; ++k)
    for (std::uint32_t i = 0; i < kChunk; ++i) sum[i] += operands.left[row][k] * operands.right[k][first + i];
  for (std::uint32_t i = 0; i < kChunk; ++i) to[i] = sum[i] + 0.0f;  // a zero is positive
}

bool is_integer_up_to(float value, float most) {
  const float magnitude = std::fabs(value) <= most ? value : 0.5f;
  return static_cast<float>(static_cast<std::int32_t>(magnitude)) == magnitude;
}

/// Whether sums are of integers so small that they are exact in any order.
bool sums_are_exact(const float* tile, std::uint32_t columns, const Operands<8>& operands) {
  constexpr float kMostOperand = 0x1p10f, kMostSum = 0x1p23f;
  bool exact = true;
  for (const auto& row : operands.left)
    for (const float value : row) exact &= is_integer_up_to(value, kMostOperand);
  for (const auto& row : operands.right)
    for (std::uint32_t i = 0; i < columns; ++i) exact &= is_integer_up_to(row[i], kMostOperand);
  for (std::uint32_t i = 0; i < kMultiplyRows * columns; ++i) exact &= is_integer_up_to(tile[i], kMostSum);
  return exact;
}

/// A finite `value` in fp32, truncated: infinite from 2^128 on. A zero is positive.
float truncated(double value) {
  const auto nearest = static_cast<float>(value);
  if (std::fabs(value) >= 0x1p128) return nearest;
  return std::fabs(static_cast<double>(nearest)) > std::fabs(value) ? std::nextafterf(nearest, 0.0f) : nearest + 0.0f;
}

/// A product beside infinities or NaNs, finite if its factors are: no product overflows before it is added.
float product_of_infinity(float a, float b) { return std::isfinite(a) && std::isfinite(b) ? 0.0f : a * b; }

/// add_truncated() of one sum of any numbers.
float sum_truncated(float sum, const Operands<8>& operands, std::uint32_t row, std::uint32_t column) {
  constexpr int kNone = -100000;
  const auto exponent = [](float value) { return std::max(std::ilogb(value), -126); };  // as it is stored
  int largest = sum != 0 ? exponent(sum) : kNone;
  bool finite = std::isfinite(sum);
  for (std::uint32_t k = 0; k < 8; ++k) {
    const float a = operands.left[row][k], b = operands.right[k][column];
    finite &= std::isfinite(a) && std::isfinite(b);
    if (a != 0 && b != 0) largest = std::max(largest, exponent(a) + exponent(b));
  }
  if (!finite) {
    for (std::uint32_t k = 0; k < 8; ++k) sum += product_of_infinity(operands.left[row][k], operands.right[k][column]);
    return std::isnan(sum) ? std::bit_cast<float>(kNaN) : sum;
  }
  if (largest == kNone) return 0.0f;
  const auto aligned = [&](double addend) { return std::trunc(std::ldexp(addend, kAlignedBits - largest)); };
  double total = aligned(sum);
  for (std::uint32_t k = 0; k < 8; ++k)
    total += aligned(static_cast<double>(operands.left[row][k]) * static_cast<double>(operands.right[k][column]));
  return truncated(std::ldexp(total, largest - kAlignedBits));
}

/// Whether no operand is infinite, NaN or subnormal.
bool operands_are_usual(std::uint32_t columns, const Operands<8>& operands) {
  const auto is_usual = [](float value) { return std::isnormal(value) || value == 0; };
  bool usual = true;
  for (const auto& row : operands.left)
    for (const float value : row) usual &= is_usual(value);
  for (const auto& row : operands.right)
    for (std::uint32_t i = 0; i < columns; ++i) usual &= is_usual(row[i]);
  return usual;
}

float power_of(float value) { return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) & 0x7f800000u); }

/// Sums of eight columns of usual operands as the hardware adds: all addends of an instruction are truncated to the
/// same last place, so many bits behind the first of the largest, and so is the sum to 24 bits.
void add_truncated(float* __restrict to, const Operands<8>& operands, const Operands<8>& powers, std::uint32_t row,
                   std::uint32_t first) {
  float largest[kChunk];
  for (std::uint32_t i = 0; i < kChunk; ++i) largest[i] = power_of(to[i]);
  for (std::uint32_t k = 0; k < 8; ++k)
    for (std::uint32_t i = 0; i < kChunk; ++i) {
      const float power = powers.left[row][k] * powers.right[k][first + i];
      largest[i] = power > largest[i] ? power : largest[i];
    }
  // Exponents for which all that follows is in the range of floats and integers.
  constexpr std::uint32_t kLeast = 60, kMost = 200;
  float up[kChunk], down[kChunk];
  bool usual = true;
  for (std::uint32_t i = 0; i < kChunk; ++i) {
    const std::uint32_t exponent = std::bit_cast<std::uint32_t>(largest[i]) >> 23;
    usual &= exponent - kLeast <= kMost - kLeast;
    up[i] = std::bit_cast<float>((2 * 127 + kAlignedBits - exponent) << 23);
    down[i] = std::bit_cast<float>((exponent - kAlignedBits) << 23);
  }
  if (!usual) {
    for (std::uint32_t i = 0; i < kChunk; ++i) to[i] = sum_truncated(to[i], operands, row, first + i);
    return;
  }
  std::int32_t total[kChunk];
  for (std::uint32_t i = 0; i < kChunk; ++i) total[i] = static_cast<std::int32_t>(to[i] * up[i]);
  for (std::uint32_t k = 0; k < 8; ++k)
    for (std::uint32_t i = 0; i < kChunk; ++i)
      total[i] += static_cast<std::int32_t>(operands.left[row][k] * operands.right[k][first + i] * up[i]);
  for (std::uint32_t i = 0; i < kChunk; ++i) {
    const std::int32_t magnitude = total[i] < 0 ? -total[i] : total[i];
    const auto nearest = static_cast<float>(magnitude);
    const std::uint32_t bits =
        std::bit_cast<std::uint32_t>(nearest) - (static_cast<std::int32_t>(nearest) > magnitude ? 1U : 0U);
    const float sum = std::bit_cast<float>(bits) * down[i];
    to[i] = total[i] < 0 ? -sum : sum;
  }
}

/// All sums of an instruction of TF32, truncated.
void add_all_truncated(float* tile, std::uint32_t columns, const Operands<8>& operands) {
  if (!operands_are_usual(columns, operands)) {
    for (std::uint32_t row = 0; row < kMultiplyRows; ++row)
      for (std::uint32_t i = 0; i < columns; ++i)
        tile[row * columns + i] = sum_truncated(tile[row * columns + i], operands, row, i);
    return;
  }
  static thread_local Operands<8> powers;
  for (std::uint32_t row = 0; row < kMultiplyRows; ++row)
    for (std::uint32_t k = 0; k < 8; ++k) powers.left[row][k] = power_of(operands.left[row][k]);
  for (std::uint32_t k = 0; k < 8; ++k)
    for (std::uint32_t i = 0; i < columns; ++i) powers.right[k][i] = power_of(operands.right[k][i]);
  for (std::uint32_t row = 0; row < kMultiplyRows; ++row)
    for (std::uint32_t first = 0; first < columns; first += kChunk)
      add_truncated(tile + row * columns + first, operands, powers, row, first);
}

template <std::uint32_t kBytes, float (*kFrom)(const char*)>
void multiply(float* __restrict tile, std::uint32_t columns, const TileOperand& a, const TileOperand& b) {
  constexpr std::uint32_t kDepth = 32 / kBytes;
  static thread_local Operands<kDepth> operands;
  for (std::uint32_t row = 0; row < kMultiplyRows; ++row)
    for (std::uint32_t k = 0; k < kDepth; ++k) operands.left[row][k] = kFrom(element<kBytes>(a, row, k));
  for (std::uint32_t column = 0; column < columns; ++column)
    for (std::uint32_t k = 0; k < kDepth; ++k) operands.right[k][column] = kFrom(element<kBytes>(b, column, k));
  if constexpr (kDepth == 8) {
    if (!sums_are_exact(tile, columns, operands)) return add_all_truncated(tile, columns, operands);
  }
  for (std::uint32_t row = 0; row < kMultiplyRows; ++row)
    for (std::uint32_t first = 0; first < columns; first += kChunk)
      add_rounded(tile + row * columns + first, operands, row, first);
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
