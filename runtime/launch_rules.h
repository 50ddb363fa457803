// What the pointers of one launch must satisfy, worked out once per kernel so that a launch pays a few comparisons.
// Knows sizes and alignment; does not know whether a pointer is device memory.
#pragma once

#include <array>
#include <cstdint>

#include "codegen/plan.h"
#include "jitconv/kernel.h"

namespace jitconv::runtime {

/// The pointers of LaunchArgs. Those before packed_w are codegen::Tensor's.
enum class Given : std::uint8_t { x, w, bias, residual, y, dy, dx, dw, db, saved, packed_w, workspace };
inline constexpr std::size_t kGiven = 12;
using GivenPointers = std::array<const void*, kGiven>;

inline GivenPointers given_pointers(const LaunchArgs& args) {
  return {args.x,  args.w,  args.bias, args.residual, args.y,        args.dy,
          args.dx, args.dw, args.db,   args.saved,    args.packed_w, args.workspace};
}

/// What kernels' parameters lead to, by codegen::Tensor: the caller's tensors and regions of scratch.
inline constexpr std::size_t kMostScratch = 8;
inline constexpr std::size_t kTensors = static_cast<std::size_t>(codegen::Tensor::scratch) + kMostScratch;
using TensorPointers = std::array<const void*, kTensors>;

class LaunchRules {
 public:
  explicit LaunchRules(const codegen::ConvPlan& plan);

  /// What a kernel parameter leads to, in bytes; 0 if there is no such tensor.
  std::int64_t bytes(codegen::Tensor tensor) const {
    return static_cast<std::int64_t>(tensor_bytes_[static_cast<std::size_t>(tensor)]);
  }

  /// Its pointer is a multiple of this.
  std::int64_t alignment(codegen::Tensor tensor) const;

  /// Whether the launch brings its weights packed.
  bool packed(const GivenPointers& pointers) const;

  /// Throws SpecError (invalid_argument) whose field is the pointer at fault.
  void check(const GivenPointers& pointers) const;
  /// The same for packing alone.
  void check_packing(const void* w, const void* packed_w) const;

  /// The pointers of kernel parameters: regions of scratch are given their places in the workspace.
  TensorPointers resolved(const GivenPointers& pointers) const;

 private:
  using Bytes = std::array<std::uint64_t, kGiven>;
  bool acceptable(const GivenPointers& pointers, const Bytes& bytes) const;
  [[noreturn]] void explain(const GivenPointers& pointers, const Bytes& bytes) const;

  std::array<std::uint64_t, kTensors> tensor_bytes_{};
  std::size_t result_ = 0;                                       // what the operation computes: y, dx or dw
  std::size_t scratch_regions_ = 0, packed_weights_ = kTensors;  // the latter: a tensor, or kTensors
  Bytes with_w_{}, with_packed_w_{}, packing_{};  // what each way to launch takes; 0: the pointer must be null
  Bytes alignment_mask_{};
};

}  // namespace jitconv::runtime
