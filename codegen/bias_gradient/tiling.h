// The pass that sums dy over its pixels for the bias gradient, where the kernel of the weight gradient does not.
#pragma once

#include <cstdint>

#include "codegen/problem.h"

namespace jitconv::codegen {

/// The pass's problem is the gradient's as it is asked for. A block sums one share of an output channel's pixels, and
/// the reduce pass adds the shares as it adds those of dw.
struct BiasGradientTiling {
  Tensor partial_sums = Tensor::scratch;
  std::int64_t stride = 0;  ///< floats from one share's sums to the next's
  int shares = 1;

  static constexpr int kThreads = 256;
  bool operator==(const BiasGradientTiling&) const = default;
};

}  // namespace jitconv::codegen
