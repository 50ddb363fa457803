// The lists of convolutions that the suite runs: the documented configurations, the rows of tests/shapes in every type
// and layout, and a handful of small ones chosen so that they reach every part of every kernel family. No device here.
#pragma once

#include <string>
#include <vector>

#include "gpu/runner.h"

namespace jitconv::test {

/// The documented configurations at full size.
std::vector<Case> documented_cases();

/// The distinct forward rows of tests/shapes, f32 and NCHW. A row whose tensors exceed `most_bytes` loses images until
/// they do not.
std::vector<Case> shape_cases(std::int64_t most_bytes);

/// The same rows in f16 and bf16, by turns.
std::vector<Case> with_16_bit_types(std::vector<Case> cases);

/// The same rows with NHWC input, output or both, in all three types: nine combinations, by turns.
std::vector<Case> with_nhwc_layouts(std::vector<Case> cases);

/// A small convolution and the plan that it is run with: between them every family, every store and both orders of
/// every layout.
struct FamilyCase {
  std::string name;  ///< "depthwise, flat store"
  ConvSpec spec;     ///< f32
  codegen::Family family = codegen::Family::none;
  /// Of the depthwise family: the store; otherwise unused.
  codegen::DepthwiseTiling::Store store = codegen::DepthwiseTiling::Store::flat;
};
const std::vector<FamilyCase>& family_cases();

/// The cheapest plan of the case's family and store for `spec`, which is the case's spec with other types, alignment or
/// epilogue; empty if that family has none.
std::optional<codegen::ConvPlan> plan_for(const FamilyCase& wanted, const ConvSpec& spec, const Target& target);

}  // namespace jitconv::test
