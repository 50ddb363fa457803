// Reads the statistics that ptxas -v prints: what a kernel uses, known without a driver.
#pragma once

#include <string>
#include <vector>

#include "codegen/source.h"
#include "jitconv/kernel.h"

namespace jitconv::runtime {

/// One entry per kernel of `entries`, in order. Numbers the log does not give are 0.
std::vector<Resources> resources_from_log(const std::string& log, const std::vector<codegen::KernelEntry>& entries);

}  // namespace jitconv::runtime
