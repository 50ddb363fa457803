// The passes that find the largest magnitude of x or of w, from which a scale for pairs of fp16 numbers follows.
#pragma once

#include <cstdint>

#include "codegen/problem.h"

namespace jitconv::codegen {

/// Each of kLargestParts blocks (f16_pairs.h) takes a share of a dense tensor, vectors of four floats at a time, and
/// writes the largest finite magnitude that it finds, as a float's bits.
struct FindRangeTiling {
  Tensor source = Tensor::x;
  std::int64_t elements = 0;
  Tensor region = Tensor::scratch;
  std::int64_t range_row = 0;  ///< row of 16 bytes of the region where the magnitudes lie

  static constexpr int kThreads = 1024;
  static constexpr int kBatch = 4;  ///< vectors of a thread in flight
  bool operator==(const FindRangeTiling&) const = default;
};

/// A plan has one of each kind at most: of w, which belongs to packed weights, and of x.
struct FindWeightRangeTiling : FindRangeTiling {
  bool operator==(const FindWeightRangeTiling&) const = default;
};
struct FindInputRangeTiling : FindRangeTiling {
  bool operator==(const FindInputRangeTiling&) const = default;
};

}  // namespace jitconv::codegen
