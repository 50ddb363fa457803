// One standalone .cu around a generated kernel: what somebody needs to profile, change or report it without jitconv.
#pragma once

#include <string>

#include "codegen/plan.h"
#include "codegen/source.h"

namespace jitconv::tools {

/// The kernel's text exactly as generated, then a main that checks and times it. `source` must have entries.
std::string harness_text(const codegen::ConvPlan& plan, const codegen::KernelSource& source);

/// harness_main.cuh, embedded by the build.
extern const char* const kHarnessMain;

}  // namespace jitconv::tools
