// RapidCheck generators of specs. Including this file makes every property of the program run 250 cases, with
// `./dev test --full` 1000, unless RC_PARAMS says otherwise.
#pragma once

#include <rapidcheck.h>

#include <cstdint>
#include <ostream>

#include "jitconv/spec.h"

namespace jitconv {

/// Lets RapidCheck and GoogleTest print counterexamples as text that parse_spec() reads.
inline void PrintTo(const ConvSpec& spec, std::ostream* stream) { *stream << to_string(spec); }
inline void showValue(const ConvSpec& spec, std::ostream& stream) { stream << to_string(spec); }

}  // namespace jitconv

namespace jitconv::test {

/// How large a generated spec may get.
struct SpecLimits {
  std::int64_t batch = 4;
  std::int64_t channels_per_group = 40;  ///< of input and of output
  std::int64_t groups = 16;
  std::int64_t taps = 12;      ///< per axis
  std::int64_t stride = 5;     ///< per axis
  std::int64_t dilation = 9;   ///< per axis
  std::int64_t padding = 14;   ///< per side
  std::int64_t outputs = 300;  ///< at most, per axis, with stride 1
};

/// Small enough for the reference to compute all outputs in no time.
inline constexpr SpecLimits kTinyLimits{2, 3, 3, 4, 3, 3, 4, 6};

/// Valid specs with every field drawn, at all edges: one channel, depthwise with a multiplier, padding beyond the
/// filter, stride beyond the filter, filters as large as the padded input, N = 0.
rc::Gen<ConvSpec> valid_specs(const SpecLimits& limits = {});

/// The same of every operation: two of three are gradients, and some weight gradients have fp32 results.
rc::Gen<ConvSpec> valid_operations(const SpecLimits& limits = {});

}  // namespace jitconv::test
