// Reads the statistics that ptxas -v prints: what a kernel uses, known without a driver.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codegen/source.h"
#include "jitconv/kernel.h"

namespace jitconv::runtime {

/// One entry per kernel of `entries`, in order. Numbers the log does not give are 0.
std::vector<Resources> resources_from_log(const std::string& log, const std::vector<codegen::KernelEntry>& entries);

/// What makes kernels that multiply asynchronously slower than their plan says, though not wrong: multiplications that
/// the compiler serialises or waits for, registers it does not move between warps, or values it keeps in local memory.
std::optional<std::string> defect(const std::string& log, const std::vector<codegen::KernelEntry>& entries);

}  // namespace jitconv::runtime
