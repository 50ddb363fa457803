// What tests of LaunchRules share: rules of a spec and of regions of scratch, and what they refuse.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "runtime/launch_rules.h"
#include "runtime_test_support.h"

namespace jitconv::runtime_test {

using codegen::Tensor;

inline constexpr std::int64_t kWorkspaceBytes = 4096;
/// Regions of kernels that have packed weights.
inline constexpr Tensor kPackedW = codegen::scratch_tensor(0), kPartialSums = codegen::scratch_tensor(1);

inline ConvSpec full_spec() {
  ConvSpec spec = new_spec();
  spec.epilogue.bias = spec.epilogue.residual = true;
  return spec;
}

template <typename T>
T* moved(T* pointer, std::ptrdiff_t bytes) {
  return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(pointer) + static_cast<std::uintptr_t>(bytes));
}

inline runtime::LaunchRules rules_for(const ConvSpec& spec, const std::vector<codegen::Scratch>& scratch) {
  codegen::ConvPlan plan;
  plan.spec = spec;
  plan.scratch = scratch;
  return runtime::LaunchRules(plan);
}

/// The field that `check` refuses, or "" if it accepts all.
inline std::string refused(const std::function<void()>& check) {
  try {
    check();
    return "";
  } catch (const SpecError& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_NE(std::string(error.what()).find(error.field()), std::string::npos) << error.what();
    return error.field();
  }
}

inline std::string refused(const runtime::LaunchRules& rules, const LaunchArgs& args) {
  return refused([&] { rules.check(runtime::given_pointers(args)); });
}

/// Why a launch of a kernel that reads w as it is was refused.
inline std::string refused(const ConvSpec& spec, const LaunchArgs& args,
                           std::int64_t workspace_bytes = kWorkspaceBytes) {
  return refused(rules_for(spec, scratch_of(0, workspace_bytes)), args);
}

}  // namespace jitconv::runtime_test
