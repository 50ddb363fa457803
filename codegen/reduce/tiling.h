// The pass that adds the partial sums of a split reduction and applies the epilogue.
#pragma once

#include <cstdint>

#include "codegen/arithmetic.h"
#include "codegen/problem.h"

namespace jitconv::codegen {

/// How ReLU is written: as a comparison, or as the instruction that later GPUs have for it (device/max_nan.cuh).
enum class Relu : std::uint8_t { comparison, instruction };

/// Floats of one split's sums of a gradient of weights: dw, and db behind it.
std::int64_t gradient_elements(const Problem& problem);
/// From one split's sums to the next's.
inline std::int64_t gradient_sum_stride(const Problem& problem) { return round_up(gradient_elements(problem), 64); }

/// How the sums of a gradient of weights lie, those of one split.
struct GradientSums {
  enum class Order : std::uint8_t {
    as_dw,
    tap_k_c,  ///< [tap][k][c], which tensor cores write in whole sectors
    tap_c_k,  ///< [tap][c][k] with taps from last to first: of exchanged operands
  };
  Order order = Order::as_dw;
  /// Groups that the kernel computed as one, see join_groups(); more than one only in the order tap_k_c. There, c
  /// counts the channels of all of them, and only those of k's own group are a part of dw.
  std::int64_t joined_groups = 1;
  std::int64_t bias_first = 0;  ///< floats before those of db
  std::int64_t stride = 0;      ///< floats to the next split's
  bool is_as_dw() const { return order == Order::as_dw; }
  bool operator==(const GradientSums&) const = default;
};
/// The most taps of a filter whose sums are in another order than as_dw. They must fit the shared memory that every
/// kernel may have.
constexpr std::int64_t kMostTaps = 48 * 1024 / 4;
/// The sums of a kernel that writes them as dw lies, and db behind it.
inline GradientSums sums_as_dw(const Problem& problem) {
  return {GradientSums::Order::as_dw, 1, problem.weight_elements(), gradient_sum_stride(problem)};
}

/// Partial sums are fp32, [split][...], each split's laid out as the problem's output, or, if the problem is a data
/// gradient with a stride, as that of its sub-pixel convolution.
struct ReduceTiling {
  Tensor partial_sums = Tensor::scratch;
  int split_k = 1;
  GradientSums sums;           ///< behind other kernels than gradients of weights, only the stride counts
  std::int64_t bias_sums = 0;  ///< of db, behind those of the output
  /// If taps are outermost in the sums: of how many filters a block brings them together in shared memory. Else 0.
  int block_filters = 0;
  std::int64_t group_k = 1;  ///< output channels of a group of dw
  Relu relu = Relu::comparison;
  int channels = 1;  ///< of a pixel that a thread stores, if it interleaves phases: a power of two

  static constexpr int kThreads = 256;
  /// Filters of one input channel each, and the blocks that they take.
  std::int64_t filters(const Problem& problem) const { return problem.output_elements() / problem.taps(); }
  std::int64_t filter_blocks(const Problem& problem) const {
    return ceil_div(filters(problem), std::int64_t{block_filters});
  }
  bool operator==(const ReduceTiling&) const = default;
};

}  // namespace jitconv::codegen
