// The pass that multiplies dy by the derivative of the activation behind the convolution whose gradient is computed.
#pragma once

#include "codegen/problem.h"

namespace jitconv::codegen {

/// The pass's problem is the gradient's as it is asked for. A thread makes `vector` neighbouring elements of dz.
struct ActivationGradientTiling {
  Tensor dz = Tensor::scratch;
  int vector = 1;

  static constexpr int kThreads = 256;
  bool operator==(const ActivationGradientTiling&) const = default;
};

}  // namespace jitconv::codegen
