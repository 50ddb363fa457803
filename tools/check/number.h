// The 16-bit floating-point formats on the host: decoding, and rounding to nearest with ties to even, straight from
// double so that nothing is rounded twice. Written for checking results, so it shares no code with the generator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "jitconv/spec.h"

namespace jitconv::check {

std::uint16_t to_f16(double value);
std::uint16_t to_bf16(double value);
float from_f16(std::uint16_t bits);
float from_bf16(std::uint16_t bits);

/// The value of `type` nearest to `value`, ties to even; overflow gives infinity.
double round_to(DataType type, double value);

/// Half the distance between 1 and the next value of `type`: 2^-24, 2^-11, 2^-8.
constexpr double unit_roundoff(DataType type) {
  return type == DataType::f32 ? 0x1p-24 : type == DataType::f16 ? 0x1p-11 : 0x1p-8;
}

/// Half the distance between 0 and the smallest value of `type` above it.
double subnormal_roundoff(DataType type);

/// The value may have either sign.
bool is_power_of_two(float value);

/// The value of an element whose bits these are, the lower ones of a 16-bit type.
float from_bits(DataType type, std::uint32_t bits);

/// Elements of `type`, as they lie in memory, to floats, which hold all three types exactly; and back, rounding.
std::vector<float> decode(DataType type, std::span<const std::byte> bytes);
std::vector<std::byte> encode(DataType type, std::span<const float> values);

}  // namespace jitconv::check
