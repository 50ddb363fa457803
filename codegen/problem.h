// What one kernel computes, in views of tensors. lower() is the only place that turns the user's ConvSpec into this;
// below it nothing knows ConvSpec. Says nothing about how: that is a tiling's business.
#pragma once

#include <cstdint>
#include <string_view>

#include "jitconv/spec.h"

namespace jitconv::codegen {

/// What a kernel's parameter points to: one of the caller's tensors or a region of the workspace. Region i of a plan is
/// scratch_tensor(i).
enum class Tensor : std::uint8_t { x, w, bias, residual, y, scratch };
constexpr Tensor scratch_tensor(std::size_t region) {
  return static_cast<Tensor>(static_cast<std::size_t>(Tensor::scratch) + region);
}
constexpr bool is_scratch(Tensor tensor) { return tensor >= Tensor::scratch; }

/// A 4-D tensor as a kernel sees it: element (n, c, h, w) lies `first` + n*stride.n + c*stride.c + h*stride.h +
/// w*stride.w elements behind the tensor's start. Of a weight, n is the output channel, c the input channel of the
/// group, and h, w are the tap. Strides may have either sign.
struct View {
  struct Strides {
    std::int64_t n = 0, c = 0, h = 0, w = 0;
    bool operator==(const Strides&) const = default;
  };
  Tensor tensor = Tensor::x;
  DataType type = DataType::f32;
  Strides stride;
  std::int64_t first = 0;
  std::int64_t element_bytes() const { return type == DataType::f32 ? 4 : 2; }
  /// Columns of a row are neighbours, or else channels of a pixel are, if the tensor is dense.
  Layout layout() const { return stride.w == 1 ? Layout::nchw : Layout::nhwc; }
  bool operator==(const View&) const = default;
};

/// One spatial axis: output[o] sums over t of input[o * stride + t * dilation - pad] * weight[t]. What lies outside of
/// the input is zero.
struct Axis {
  std::int64_t input = 1, output = 1;  ///< extents
  std::int64_t taps = 1, stride = 1, dilation = 1;
  std::int64_t pad = 0;  ///< before the input; negative: a crop
  /// Pixels from the first tap to the last.
  std::int64_t reach() const { return (taps - 1) * dilation; }
  bool operator==(const Axis&) const = default;
};

/// What products are made of. Sums are fp32.
enum class Arithmetic : std::uint8_t {
  fp32,  ///< FMA of floats
  tf32,  ///< tensor cores, floats rounded to TF32
  f16,   ///< tensor cores
  bf16,  ///< tensor cores
};
std::string_view to_string(Arithmetic arithmetic);

/// What is summed over: channels and taps (the result is the output), or images and pixels (the result is the weight).
enum class Reduction : std::uint8_t { taps, pixels };

/// y[n, g*k + i, p, q] = epilogue(sum over c, r, s of x[n, g*c + j, ...] * w[g*k + i, j, r, s]), see Axis.
struct Problem {
  std::int64_t n = 1, groups = 1;
  std::int64_t c = 1, k = 1;  ///< input and output channels of a group
  Axis rows, columns;
  View input, weight, output;  ///< a residual lies like the output
  Arithmetic arithmetic = Arithmetic::fp32;
  Reduction reduction = Reduction::taps;
  Epilogue epilogue;
  std::int64_t alignment = 16;  ///< bytes: every tensor's address is a multiple

  std::int64_t input_channels() const { return groups * c; }
  std::int64_t output_channels() const { return groups * k; }
  std::int64_t input_plane() const { return rows.input * columns.input; }
  std::int64_t output_plane() const { return rows.output * columns.output; }
  std::int64_t taps() const { return rows.taps * columns.taps; }
  std::int64_t input_elements() const { return n * input_channels() * input_plane(); }
  std::int64_t weight_elements() const { return output_channels() * c * taps(); }
  std::int64_t output_elements() const { return n * output_channels() * output_plane(); }
  bool operator==(const Problem&) const = default;
};

/// Strides of a dense tensor with these extents.
View::Strides dense_strides(Layout layout, std::int64_t channels, std::int64_t h, std::int64_t w);

/// The convolution of a canonical spec. Throws SpecError (unsupported) for what no kernel of this version computes:
/// operations other than forward, and an output type that is not dtype.
Problem lower(const ConvSpec& spec);

/// The first rule of the forward kernels that a view or axis of `problem` breaks: dense tensors that start at their
/// first element, no crop, a reduction over taps. Empty if none is broken.
std::string_view beyond_dense_forward(const Problem& problem);

/// FLOP = 2 * N*K*P*Q * (C/groups)*R*S, and the bytes of x, w, bias, residual and y, each counted once.
struct Work {
  double flop = 0, bytes = 0;
};
Work work(const Problem& problem);

}  // namespace jitconv::codegen
