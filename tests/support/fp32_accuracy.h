// What math=fp32 promises, and fp16x3 of numbers of about one size, measured: no larger an error against fp64 than a
// loop of fp32 FMAs has, over c, r and s or, of a weight gradient, over n, p and q. On any device; without an epilogue.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "codegen/plan.h"
#include "jitconv/kernel.h"
#include "tools/device.h"

namespace jitconv::test {

enum class Numbers : std::uint8_t {
  zero_mean,   ///< normally distributed
  positive,    ///< from 0 to 1: shows accumulators that truncate
  lognormal,   ///< of both signs, over 40 orders of magnitude
  cancelling,  ///< the second half of the channels takes away what the first has summed up
  /// Zero-mean, but for the last number of each tensor, which is 4096 times as large. An output that it dominates is
  /// more exact in a loop.
  planted,
};
/// Numbers that are not too small beside the largest for pairs of fp16 numbers.
inline constexpr Numbers kNumbersOfOneSize[] = {Numbers::zero_mean, Numbers::positive, Numbers::cancelling};
inline constexpr Numbers kAllNumbers[] = {Numbers::zero_mean, Numbers::positive, Numbers::lognormal,
                                          Numbers::cancelling};
std::string_view to_string(Numbers numbers);

/// Plans of tensor cores for fp32 tensors in fp32 mode: short and long sums, of each the one that has the longest
/// steps; weight gradients with one block for all pixels.
std::vector<codegen::ConvPlan> fp32_plans(const Target& target);
/// The same of pairs of fp16 numbers, in fp16x3 mode; no weight gradients.
std::vector<codegen::ConvPlan> fp16x3_plans(const Target& target);

/// The largest error of an output over the sum of its products' magnitudes, in units of 2^-24.
struct LargestErrors {
  double kernel = 0, fma_loop = 0;
};
LargestErrors largest_errors(tools::Device& device, const Kernel& kernel, Numbers numbers);

/// Products of infinities, NaNs, zeros, subnormal numbers and numbers at both ends of the range, or in fp16x3 mode of
/// numbers down to 2^-149 times the largest, one in each sum, beside products of `others`. "" or how many outputs are
/// not what a loop of FMAs makes of them, and the first.
std::string special_value_faults(tools::Device& device, const Kernel& kernel, float others);

}  // namespace jitconv::test
