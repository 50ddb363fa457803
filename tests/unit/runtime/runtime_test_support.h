// Set-up shared by the runtime's tests: a process that compiles with the fake NVRTC, launches on the fake driver, and
// has a disk cache of its own; specs that no other test uses.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "codegen/plan.h"
#include "fake_driver.h"
#include "jitconv/jitconv.hpp"
#include "runtime/compile.h"

namespace jitconv::runtime_test {

/// A fresh directory, removed at the end.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "jitconv-test-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) std::abort();
    path_ = pattern;
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Sets a variable for the length of a scope.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const std::string& value) : name_(name) { setenv(name, value.c_str(), 1); }
  ~ScopedVariable() { unsetenv(name_); }
  ScopedVariable(const ScopedVariable&) = delete;
  ScopedVariable& operator=(const ScopedVariable&) = delete;

 private:
  const char* name_;
};

/// Another convolution at each call, so that tests do not meet each other's kernels in the registry. Tensor cores do
/// not serve it, so that a launch is one kernel without tensor maps.
inline ConvSpec new_spec() {
  static std::int64_t width = 32;
  ConvSpec spec;
  spec.input = {2, 8, 16, ++width};
  spec.weight = {16, 8, 3, 3};
  spec.padding = {1};
  spec.math = MathMode::ieee;
  return spec;
}

inline const void* at(std::uintptr_t address) { return reinterpret_cast<const void*>(address); }

/// Addresses that satisfy `spec`; nothing is ever read or written there.
inline LaunchArgs addresses_for(const ConvSpec& spec) {
  const auto at = [](std::uintptr_t tens_of_gib) { return reinterpret_cast<void*>(tens_of_gib << 34); };
  const bool forward = spec.operation == Operation::forward, weights = spec.operation == Operation::weight_gradient;
  LaunchArgs args;
  if (forward || weights) args.x = at(1);
  if (!weights) args.w = at(2);
  if (spec.epilogue.bias && !weights) args.bias = at(3);
  if (spec.epilogue.residual) args.residual = at(4);
  if (forward) args.y = at(5);
  args.workspace = at(6);
  if (!forward) args.dy = at(8);
  if (spec.dy_activation != Activation::none) args.saved = at(12);
  if (!forward && !weights) args.dx = at(9);
  if (weights) args.dw = at(10);
  if (weights && spec.epilogue.bias) args.db = at(11);
  return args;
}

/// Regions of scratch of these sizes, in the planner's order, without those of 0 bytes.
inline std::vector<codegen::Scratch> scratch_of(std::int64_t packed_weights, std::int64_t partial_sums,
                                                std::int64_t transposed_pixels = 0) {
  std::vector<codegen::Scratch> regions;
  if (packed_weights != 0) regions.push_back({"packed_w", packed_weights, /*is_packed_weights=*/true});
  if (partial_sums != 0) regions.push_back({"partial_sums", partial_sums});
  if (transposed_pixels != 0) regions.push_back({"transposed_x", transposed_pixels});
  return regions;
}

class RuntimeTest : public testing::Test {
 protected:
  void SetUp() override { fake_driver::reset(); }
  void TearDown() override {
    EXPECT_EQ(fake_driver::violations(), std::vector<std::string>());
    EXPECT_LE(fake_driver::retained_primary_contexts(), 1);
  }
};

}  // namespace jitconv::runtime_test
