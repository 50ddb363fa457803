// NaN and infinity go where the definition says and nowhere else: outputs that do not read them keep their bits,
// whatever lies in padding, tile borders and unused channels. On any device.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "codegen/plan.h"
#include "support/family_cases.h"
#include "support/report.h"
#include "tools/device.h"

namespace jitconv::test {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

struct SpecialValuesCase {
  std::string name;
  codegen::ConvPlan plan;
};

/// A case of family_cases() in one of its types: with bias, and relu, which NaN must pass. Throws std::logic_error if
/// its family has no plan for that.
SpecialValuesCase special_values_case(const FamilyCase& family, DataType type, const Target& target);

/// Launches the kernel on exact data among which are NaN, infinity and minus infinity: at corners, on edges and inside
/// of x and dy, in the first and last channel and image, and in the last channel's bias. "" or what is wrong: an
/// output, bytes written out of bounds. Gradients may have more NaNs, where docs/accuracy.md says so.
std::string special_values_fault(tools::Device& device, const Kernel& kernel, Report::Category& counts);

}  // namespace jitconv::test
