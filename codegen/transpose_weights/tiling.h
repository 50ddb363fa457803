// The pass that writes a view of the weights as a dense tensor: channels exchanged and taps from last to first, as a
// data gradient's kernels want them. Families that pack weights read the view themselves.
#pragma once

#include <cstdint>

#include "codegen/problem.h"

namespace jitconv::codegen {

/// A thread writes one element; or kSide x kSide of them, of a block's kTileK output and kTileC input channels, if
/// output channels, which are furthest apart in the result, are neighbours in w.
struct TransposeWeightsTiling {
  Tensor dense = Tensor::scratch;
  bool lets_next_start = false;  ///< the convolution waits for the weights itself, on GPUs where kernels may overlap
  static constexpr int kThreads = 256;
  static constexpr int kSide = 4, kTileK = 8 * kSide, kTileC = kThreads / 8 * kSide;
  /// Whether a thread writes kSide x kSide elements. The weights as they were asked for decide, also where the problem
  /// has dense ones in their place.
  static bool takes_tiles(const Problem& problem) {
    return problem.taps() == 1 && !problem.is_sub_pixel() &&
           problem.asked_weight.value_or(problem.weight).stride.n == 1;
  }
  static std::int64_t blocks(const Problem& asked);
  bool operator==(const TransposeWeightsTiling&) const = default;
};

/// The problem with dense weights in place of a view of them.
Problem with_dense_weight(const Problem& problem);

}  // namespace jitconv::codegen
