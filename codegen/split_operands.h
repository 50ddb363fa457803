// When fp32 operands that are split into two numbers each are as accurate as fp32 FMA: what the families of tensor
// cores share. Not how they are split (templates/device/split_tf32.cuh, split_f16.cuh).
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "fmt/format.h"

namespace jitconv::codegen {

/// Shorter sums may have a smaller error in a loop of FMAs.
inline constexpr std::int64_t kFewestSplitProducts = 64;

/// Multiplications, of eight products each, or of 16 pairs of fp16 numbers, that truncating accumulators may take
/// before they are added to fp32 sums, so that the error stays below that of an FMA loop, which grows with the number
/// of products: docs/accuracy.md.
constexpr int longest_promotion_interval(std::int64_t products) {
  const std::int64_t of_short_sum = std::max<std::int64_t>(products / 32 - 1, 1),
                     of_long_sum = std::clamp<std::int64_t>(products / 144, 3, 8);
  return static_cast<int>(std::min(of_short_sum, of_long_sum));
}

/// What a float becomes two of.
enum class SplitInto : std::uint8_t { tf32, f16 };

/// What explain() says of them.
inline std::string split_operands_text(SplitInto numbers, int promotion_interval) {
  return fmt::format(
      "products: {}; accumulators are added to fp32 sums after {} multiplication(s) of the larger parts\n",
      numbers == SplitInto::tf32 ? "3xTF32, operands are split into two TF32 numbers"
                                 : "3xFP16, operands are scaled and split into two fp16 numbers",
      promotion_interval);
}

}  // namespace jitconv::codegen
