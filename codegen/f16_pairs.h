// fp32 operands as pairs of fp16 numbers: what the kernels of a plan that multiplies them agree on. How floats are
// split is in templates/device/split_f16.cuh.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "fmt/format.h"

namespace jitconv::codegen {

/// Pairs lie in memory as groups of so many channels: 32 bytes of larger parts, then 32 bytes of smaller ones. So they
/// take as many bytes as floats, and a tensor of them has a pixel of floats' strides.
inline constexpr std::int64_t kPairGroupChannels = 16;
inline constexpr std::int64_t kPairGroupRows = 4;  ///< rows of 16 bytes, of which each part has two

/// What is known of a tensor's range: the largest magnitudes that so many blocks have found, from which every kernel
/// finds the scale. That of weights lies behind the packed ones, that of the input in a region of its own.
inline constexpr int kLargestParts = 128;
static_assert(kLargestParts == 32 * 4, "largest_of() reads four with each lane of a warp");
inline constexpr std::int64_t kRangeBytes = 4 * kLargestParts;

/// The line that finds the scale of a tensor, whose largest magnitudes lie at `parts`.
inline std::string find_scale(std::string_view parts) {
  return fmt::format("const float scale = scale_of(largest_of({}));", parts);
}

}  // namespace jitconv::codegen
