// See number.h. Both formats are described by two numbers, so there is one rounding routine to get right.
#include "tools/check/number.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <stdexcept>

namespace jitconv::check {
namespace {

/// A sign, `exponent_bits` of biased exponent and `fraction_bits` below an implied leading one.
struct Format {
  int exponent_bits, fraction_bits;

  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  std::uint32_t infinity() const { return ((1u << exponent_bits) - 1) << fraction_bits; }
};

constexpr Format kF16{5, 10};
constexpr Format kBf16{8, 7};

// In integers rather than with libm: whole tensors go through here.
std::uint16_t to_format(Format format, double value) {
  constexpr int kDoubleFraction = 52;
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(value);
  const std::uint32_t sign = static_cast<std::uint32_t>(bits >> 63) << 15;
  const auto with_sign = [sign](std::uint64_t magnitude) { return static_cast<std::uint16_t>(sign | magnitude); };
  if (std::isnan(value)) return with_sign(format.infinity() | (1u << (format.fraction_bits - 1)));
  if (std::isinf(value)) return with_sign(format.infinity());

  const int least = 1 - format.bias();  // exponent of the smallest normal value
  const int exponent = static_cast<int>((bits >> kDoubleFraction) & 0x7ff) - 1023;
  if (exponent < least - format.fraction_bits - 1) return with_sign(0);  // below half of the smallest subnormal
  const std::uint64_t significand = (bits & ((1ull << kDoubleFraction) - 1)) | (1ull << kDoubleFraction);
  const int shift = kDoubleFraction - format.fraction_bits + std::max(0, least - exponent);
  const std::uint64_t half = 1ull << (shift - 1);
  const std::uint64_t dropped = significand & (2 * half - 1);
  std::uint64_t units = significand >> shift;
  if (dropped > half || (dropped == half && (units & 1) != 0)) ++units;
  // The implied one adds 1 to the exponent field, and so does a carry out of the fraction: plain addition does both.
  const std::uint64_t steps = static_cast<std::uint64_t>(std::max(exponent, least) - least);
  return with_sign(std::min<std::uint64_t>((steps << format.fraction_bits) + units, format.infinity()));
}

float from_format(Format format, std::uint16_t bits) {
  constexpr int kFloatFraction = 23, kFloatBias = 127;
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000) << 16;
  const std::uint32_t magnitude = bits & 0x7fff;
  const std::uint32_t fraction = magnitude & ((1u << format.fraction_bits) - 1);
  const std::uint32_t exponent = magnitude >> format.fraction_bits;
  const std::uint32_t float_fraction = fraction << (kFloatFraction - format.fraction_bits);
  if (magnitude >= format.infinity()) return std::bit_cast<float>(sign | 0x7f800000u | float_fraction);
  if (exponent == 0) {
    const float value = std::ldexp(static_cast<float>(fraction), 1 - format.bias() - format.fraction_bits);
    return sign != 0 ? -value : value;
  }
  const std::uint32_t float_exponent = exponent + static_cast<std::uint32_t>(kFloatBias - format.bias());
  return std::bit_cast<float>(sign | (float_exponent << kFloatFraction) | float_fraction);
}

}  // namespace

std::uint16_t to_f16(double value) { return to_format(kF16, value); }
std::uint16_t to_bf16(double value) { return to_format(kBf16, value); }
float from_f16(std::uint16_t bits) { return from_format(kF16, bits); }
float from_bf16(std::uint16_t bits) { return from_format(kBf16, bits); }

double round_to(DataType type, double value) {
  switch (type) {
    case DataType::f32:
      return static_cast<double>(static_cast<float>(value));
    case DataType::f16:
      return static_cast<double>(from_f16(to_f16(value)));
    case DataType::bf16:
      return static_cast<double>(from_bf16(to_bf16(value)));
  }
  throw std::invalid_argument("unknown data type");
}

double subnormal_roundoff(DataType type) {
  return std::ldexp(1.0, type == DataType::f32 ? -150 : type == DataType::f16 ? -25 : -134);
}

bool is_power_of_two(float value) {
  int exponent;
  return value != 0 && std::fabs(std::frexp(value, &exponent)) == 0.5f;
}

float from_bits(DataType type, std::uint32_t bits) {
  if (type == DataType::f16) return from_f16(static_cast<std::uint16_t>(bits));
  if (type == DataType::bf16) return from_bf16(static_cast<std::uint16_t>(bits));
  return std::bit_cast<float>(bits);
}

std::vector<float> decode(DataType type, std::span<const std::byte> bytes) {
  const std::size_t size = static_cast<std::size_t>(element_bytes(type));
  std::vector<float> values(bytes.size() / size);
  if (type == DataType::f32) {
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), values.size() * size);
    return values;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint16_t bits;
    std::memcpy(&bits, bytes.data() + i * size, size);
    values[i] = type == DataType::f16 ? from_f16(bits) : from_bf16(bits);
  }
  return values;
}

std::vector<std::byte> encode(DataType type, std::span<const float> values) {
  const std::size_t size = static_cast<std::size_t>(element_bytes(type));
  std::vector<std::byte> bytes(values.size() * size);
  if (type == DataType::f32) {
    if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double value = static_cast<double>(values[i]);
    const std::uint16_t bits = type == DataType::f16 ? to_f16(value) : to_bf16(value);
    std::memcpy(bytes.data() + i * size, &bits, size);
  }
  return bytes;
}

}  // namespace jitconv::check
