// Counts how often each output of a small convolution is computed, for tests that restate how a family deals outputs to
// blocks and threads.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "codegen/plan.h"

namespace jitconv::test {

class TileCover {
 public:
  explicit TileCover(const ConvSpec& spec) : TileCover(output_shape(spec)) {}
  explicit TileCover(const TensorShape& shape)
      : shape_(shape), counts_(static_cast<std::size_t>(shape.n * shape.c * shape.h * shape.w), 0) {}

  /// Outputs outside the tensor are those that tiles overhang and kernels must not store: not counted.
  void add(std::int64_t n, std::int64_t k, std::int64_t p, std::int64_t q) {
    if (k >= shape_.c || p >= shape_.h || q >= shape_.w || n >= shape_.n) return;
    ++counts_[static_cast<std::size_t>(((n * shape_.c + k) * shape_.h + p) * shape_.w + q)];
  }
  bool each_once() const {
    return std::all_of(counts_.begin(), counts_.end(), [](int count) { return count == 1; });
  }
  const TensorShape& shape() const { return shape_; }

 private:
  TensorShape shape_;
  std::vector<int> counts_;
};

/// Specs whose outputs can be counted one by one.
inline constexpr std::int64_t kFewOutputs = 40'000;

}  // namespace jitconv::test
