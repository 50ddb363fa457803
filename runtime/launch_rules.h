// What the pointers of one launch must satisfy, worked out once per kernel so that a launch pays a few comparisons.
// Knows sizes and alignment; does not know whether a pointer is device memory.
#pragma once

#include <array>
#include <cstdint>

#include "codegen/source.h"
#include "jitconv/kernel.h"

namespace jitconv::runtime {

inline constexpr std::size_t kRoles = 6;  // codegen::ArgumentRole, in its order

/// The pointers of a launch by codegen::ArgumentRole.
using RolePointers = std::array<const void*, kRoles>;

inline RolePointers by_role(const LaunchArgs& args) {
  return {args.x, args.w, args.bias, args.residual, args.y, args.workspace};
}

class LaunchRules {
 public:
  LaunchRules(const codegen::ConvPlan& plan, std::int64_t workspace_bytes);

  /// What the pointer of each role leads to, in bytes; 0 if the kernels do not use it.
  std::int64_t bytes(codegen::ArgumentRole role) const {
    return static_cast<std::int64_t>(bytes_[static_cast<std::size_t>(role)]);
  }

  /// Throws SpecError (invalid_argument) whose field is the pointer at fault.
  void check(const RolePointers& pointers) const;

 private:
  bool acceptable(const RolePointers& pointers) const;
  [[noreturn]] void explain(const RolePointers& pointers) const;

  std::array<std::uint64_t, kRoles> bytes_{};  // 0: the pointer must be null
  std::array<std::uint64_t, kRoles> alignment_mask_{};
};

}  // namespace jitconv::runtime
