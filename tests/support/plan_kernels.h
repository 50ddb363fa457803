// What a plan launches, in one line, for tests that compare it or print it.
#pragma once

#include <string>

#include "codegen/plan.h"

namespace jitconv::test {

/// "pack_weights wgmma reduce"
inline std::string kernels_of(const codegen::ConvPlan& plan) {
  std::string names;
  for (const codegen::KernelPlan& kernel : plan.kernels)
    names.append(names.empty() ? "" : " ").append(to_string(kernel.family()));
  return names;
}

}  // namespace jitconv::test
