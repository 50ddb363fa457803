// Kernels that pack their weights first: that packing ahead of the launches changes nothing, on any device.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codegen/plan.h"
#include "support/report.h"
#include "tools/device.h"

namespace jitconv::test {

struct PackingCase {
  const char* name;
  codegen::ConvPlan plan;
};

/// Small convolutions of each type with padding on all sides, channels that no tile divides and a full epilogue, each
/// once with its reduction in one piece and once split; two of them transpose pixels. Empty for a target without such
/// kernels.
std::vector<PackingCase> packing_cases(const Target& target);

/// Launches the kernel with w, and twice with one packing of it, on the same data. "" or what is wrong: the results,
/// bits that differ, bytes written out of bounds. What a launch needs no longer is not there: w, and the workspace
/// beyond workspace_bytes_with_packed_weights().
std::string packing_fault(tools::Device& device, const Kernel& kernel, Report::Category& counts);

/// Kernels that pack filters of every kind: slices of one tap and of many, steps with a unit that has no partner, taps
/// in another order than the filter's, groups, channels and output channels that nothing divides, filters so large that
/// a block has few output channels. Empty for a target without such kernels.
std::vector<codegen::ConvPlan> layout_plans(const Target& target);

/// Packs bits that are different for each weight and compares every byte with the layout, which is restated here: "" or
/// the first row that is wrong.
std::string packed_bytes_fault(tools::Device& device, const Kernel& kernel);

}  // namespace jitconv::test
