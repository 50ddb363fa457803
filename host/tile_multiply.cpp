// Compiled with -O3 in every configuration: this is where the CPU time of a tensor-core kernel goes. Operands are
// unpacked to floats once, b transposed, so that the innermost operations are on vectors of columns.
#include "host/tile_multiply.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "host/swizzle.h"

namespace jitconv::host {
namespace {

constexpr std::uint32_t kChunk = 8;          // columns that are summed up in a vector
constexpr std::uint32_t kNaN = 0x7fffffffu;  // whatever made it
constexpr int kAlignedBits = 25;             // behind the first of the largest addend, that an H200 adds

// Compilers unroll loops over eight numbers before they think of vectors, so these are named. Not for arguments or
// results: how these are passed depends on the processor.
using Floats = float __attribute__((vector_size(4 * kChunk)));
using Ints = std::int32_t __attribute__((vector_size(4 * kChunk)));
using FloatsInMemory = float __attribute__((vector_size(4 * kChunk), aligned(4), may_alias));

const FloatsInMemory& vector_at(const float* values) { return *reinterpret_cast<const FloatsInMemory*>(values); }
FloatsInMemory& vector_at(float* values) { return *reinterpret_cast<FloatsInMemory*>(values); }

/// Whether a comparison holds in some column.
bool any_of(const Ints& holds) {
  std::int32_t any = 0;
  for (std::uint32_t i = 0; i < kChunk; ++i) any |= holds[i];
  return any != 0;
}

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
void add_rounded(float* to, const Operands<kDepth>& operands, std::uint32_t row, std::uint32_t first) {
  Floats sum = vector_at(to);
  for (std::uint32_t k = 0; k < kDepth; ++k) sum += operands.left[row][k] * vector_at(operands.right[k] + first);
  vector_at(to) = sum + 0.0f;  // a zero is positive
}

/// Whether all of `count` numbers, a multiple of eight, are integers of magnitudes up to `most`.
bool are_integers_up_to(const float* values, std::uint32_t count, float most) {
  for (std::uint32_t i = 0; i < count; i += kChunk) {
    const Floats value = vector_at(values + i);
    const Floats bounded = value <= most && value >= -most ? value : value * 0.0f + 0.5f;
    const Ints wrong = __builtin_convertvector(__builtin_convertvector(bounded, Ints), Floats) != bounded;
    if (any_of(wrong)) return false;
  }
  return true;
}

/// Whether sums are of integers so small that they are exact in any order.
bool sums_are_exact(const float* tile, std::uint32_t columns, const Operands<8>& operands) {
  constexpr float kMostOperand = 0x1p10f, kMostSum = 0x1p23f;
  if (!are_integers_up_to(operands.left[0], kMultiplyRows * 8, kMostOperand)) return false;
  for (const auto& row : operands.right)
    if (!are_integers_up_to(row, columns, kMostOperand)) return false;
  return are_integers_up_to(tile, kMultiplyRows * columns, kMostSum);
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

/// Whether none of `count` numbers, a multiple of eight, is infinite, NaN or subnormal.
bool are_usual(const float* values, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; i += kChunk) {
    const Floats value = vector_at(values + i);
    const Ints bits = reinterpret_cast<Ints>(value);
    const Ints magnitude = bits & 0x7fffffff, exponent = bits & 0x7f800000;
    const Ints wrong = (exponent == 0x7f800000) | ((exponent == 0) & (magnitude != 0));
    if (any_of(wrong)) return false;
  }
  return true;
}

bool operands_are_usual(std::uint32_t columns, const Operands<8>& operands) {
  if (!are_usual(operands.left[0], kMultiplyRows * 8)) return false;
  for (const auto& row : operands.right)
    if (!are_usual(row, columns)) return false;
  return true;
}

float power_of(float value) { return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) & 0x7f800000u); }

/// Sums of eight columns of usual operands as the hardware adds: all addends of an instruction are truncated to the
/// same last place, so many bits behind the first of the largest, and so is the sum to 24 bits.
void add_truncated(float* to, const Operands<8>& operands, const Operands<8>& powers, std::uint32_t row,
                   std::uint32_t first) {
  Floats sum = vector_at(to);
  Floats largest = reinterpret_cast<Floats>(reinterpret_cast<Ints>(sum) & 0x7f800000);
  for (std::uint32_t k = 0; k < 8; ++k) {
    const Floats power = powers.left[row][k] * vector_at(powers.right[k] + first);
    largest = power > largest ? power : largest;
  }
  // Exponents for which all that follows is in the range of floats and integers.
  constexpr std::int32_t kLeast = 60, kMost = 200;
  const Ints exponent = reinterpret_cast<Ints>(largest) >> 23;
  const Ints unusual = (exponent < kLeast) | (exponent > kMost);
  if (any_of(unusual)) {
    for (std::uint32_t i = 0; i < kChunk; ++i) to[i] = sum_truncated(to[i], operands, row, first + i);
    return;
  }
  const Floats up = reinterpret_cast<Floats>((2 * 127 + kAlignedBits - exponent) << 23);
  const Floats down = reinterpret_cast<Floats>((exponent - kAlignedBits) << 23);
  Ints total = __builtin_convertvector(sum * up, Ints);
  for (std::uint32_t k = 0; k < 8; ++k)
    total += __builtin_convertvector(operands.left[row][k] * vector_at(operands.right[k] + first) * up, Ints);
  const Ints magnitude = total < 0 ? -total : total;
  const Floats nearest = __builtin_convertvector(magnitude, Floats);
  const Ints above = __builtin_convertvector(nearest, Ints) > magnitude;  // -1 where it is
  sum = reinterpret_cast<Floats>(reinterpret_cast<Ints>(nearest) + above) * down;
  vector_at(to) = total < 0 ? -sum : sum;
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

void multiply_unswizzled(MultiplyType type, float* tile, std::uint32_t columns, const TileOperand& a,
                         const TileOperand& b) {
  switch (type) {
    case MultiplyType::tf32:
      return multiply<4, from_tf32>(tile, columns, a, b);
    case MultiplyType::f16:
      return multiply<2, from_f16>(tile, columns, a, b);
    case MultiplyType::bf16:
      return multiply<2, from_bf16>(tile, columns, a, b);
  }
}

#if defined(__x86_64__)
/// The same for vectors of 32 bytes. Without FMA: every product is rounded.
__attribute__((target("avx2"), flatten)) void multiply_avx2(MultiplyType type, float* tile, std::uint32_t columns,
                                                            const TileOperand& a, const TileOperand& b) {
  multiply_unswizzled(type, tile, columns, a, b);
}
#endif

}  // namespace

void multiply_tile(MultiplyType type, float* tile, std::uint32_t columns, const TileOperand& a, const TileOperand& b) {
  if (a.row_bytes != 0 || b.row_bytes != 0) {
    static thread_local char left[kMultiplyRows * 32], right[kMostMultiplyColumns * 32];
    return multiply_tile(type, tile, columns, a.row_bytes != 0 ? unswizzled(a, kMultiplyRows, left) : a,
                         b.row_bytes != 0 ? unswizzled(b, columns, right) : b);
  }
#if defined(__x86_64__)
  static const bool has_avx2 = __builtin_cpu_supports("avx2");
  if (has_avx2) return multiply_avx2(type, tile, columns, a, b);
#endif
  multiply_unswizzled(type, tile, columns, a, b);
}

}  // namespace jitconv::host
