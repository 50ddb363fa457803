// The pass that adds the partial sums of a split reduction and applies the epilogue.
#pragma once

#include <cstdint>

#include "codegen/problem.h"

namespace jitconv::codegen {

/// How ReLU is written: as a comparison, or as the instruction that later GPUs have for it (device/max_nan.cuh).
enum class Relu : std::uint8_t { comparison, instruction };

/// Partial sums are fp32, [split][...], each split's laid out as the problem's output.
struct ReduceTiling {
  Tensor partial_sums = Tensor::scratch;
  int split_k = 1;
  std::int64_t stride = 0;  ///< floats from one split's sums to the next's
  Relu relu = Relu::comparison;

  static constexpr int kThreads = 256;
  bool operator==(const ReduceTiling&) const = default;
};

}  // namespace jitconv::codegen
