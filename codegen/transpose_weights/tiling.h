// The pass that writes a view of the weights as a dense tensor: channels exchanged and taps from last to first, as a
// data gradient's kernels want them. Families that pack weights read the view themselves.
#pragma once

#include <cstdint>

#include "codegen/problem.h"

namespace jitconv::codegen {

/// A thread writes one element.
struct TransposeWeightsTiling {
  Tensor dense = Tensor::scratch;
  static constexpr int kThreads = 256;
  bool operator==(const TransposeWeightsTiling&) const = default;
};

/// The problem with dense weights in place of a view of them.
Problem with_dense_weight(const Problem& problem);

}  // namespace jitconv::codegen
