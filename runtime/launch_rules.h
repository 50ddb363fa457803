// What the pointers of one launch must satisfy, worked out once per kernel so that a launch pays a few comparisons.
// Knows sizes and alignment; does not know whether a pointer is device memory.
#pragma once

#include <array>
#include <cstdint>

#include "codegen/source.h"
#include "jitconv/kernel.h"

namespace jitconv::runtime {

inline constexpr std::size_t kRoles = 9;  // codegen::ArgumentRole, in its order

/// The pointers of a launch by codegen::ArgumentRole.
using RolePointers = std::array<const void*, kRoles>;

inline RolePointers by_role(const LaunchArgs& args) {
  return {args.x, args.w, args.bias, args.residual, args.y, args.workspace, args.packed_w, nullptr, nullptr};
}

class LaunchRules {
 public:
  explicit LaunchRules(const codegen::ConvPlan& plan);

  /// What a kernel parameter of the role leads to, in bytes; 0 if there is none.
  std::int64_t bytes(codegen::ArgumentRole role) const {
    return static_cast<std::int64_t>(extents_[static_cast<std::size_t>(role)]);
  }

  /// Its pointer is a multiple of this.
  std::int64_t alignment(codegen::ArgumentRole role) const {
    return static_cast<std::int64_t>(alignment_mask_[static_cast<std::size_t>(role)] + 1);
  }

  /// Whether the launch brings its weights packed.
  bool packed(const RolePointers& pointers) const;

  /// Throws SpecError (invalid_argument) whose field is the pointer at fault.
  void check(const RolePointers& pointers) const;
  /// The same for packing alone.
  void check_packing(const void* w, const void* packed_w) const;

  /// The pointers of kernel parameters: packed weights and partial sums are given their places in the workspace.
  RolePointers resolved(RolePointers pointers) const;

 private:
  using Bytes = std::array<std::uint64_t, kRoles>;
  bool acceptable(const RolePointers& pointers, const Bytes& bytes) const;
  [[noreturn]] void explain(const RolePointers& pointers, const Bytes& bytes) const;

  Bytes extents_{};
  Bytes with_w_{}, with_packed_w_{}, packing_{};  // what each way to launch takes; 0: the pointer must be null
  Bytes alignment_mask_{};
};

}  // namespace jitconv::runtime
