// What one kernel computes, in views of tensors. lower() is the only place that turns the user's ConvSpec into this;
// below it nothing knows ConvSpec. Says nothing about how: that is a tiling's business.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string_view>
#include <vector>

#include "codegen/arithmetic.h"
#include "jitconv/spec.h"

namespace jitconv::codegen {

/// Bytes of the input's pixels in another order, at most, that a kernel before the convolution makes: a workspace that
/// nobody minds.
inline constexpr std::int64_t kMostPreparedBytes = 256 << 20;

/// What a kernel's parameter points to: one of the caller's tensors or a region of the workspace. Region i of a plan is
/// scratch_tensor(i).
enum class Tensor : std::uint8_t { x, w, bias, residual, y, dy, dx, dw, db, saved, scratch };
constexpr Tensor scratch_tensor(std::size_t region) {
  return static_cast<Tensor>(static_cast<std::size_t>(Tensor::scratch) + region);
}
constexpr bool is_scratch(Tensor tensor) { return tensor >= Tensor::scratch; }
/// One of the caller's tensors that a launch writes.
constexpr bool is_result(Tensor tensor) {
  return tensor == Tensor::y || tensor == Tensor::dx || tensor == Tensor::dw || tensor == Tensor::db;
}

/// A 4-D tensor as a kernel sees it: element (n, c, h, w) lies `first` + n*stride.n + c*stride.c + h*stride.h +
/// w*stride.w elements behind the tensor's start. Of a weight, n is the output channel of the group, c the input
/// channel of the group, h, w are the tap, and groups are `group` elements apart. Strides may have either sign.
struct View {
  struct Strides {
    std::int64_t n = 0, c = 0, h = 0, w = 0;
    bool operator==(const Strides&) const = default;
  };
  Tensor tensor = Tensor::x;
  DataType type = DataType::f32;
  Strides stride;
  std::int64_t first = 0;
  std::int64_t group = 0;  ///< of a weight
  /// Made by transpose_input/ or gather_patches/: pixels are whole operand rows, whose floats are TF32 unless products
  /// are of split ones.
  bool is_operand_rows = false;
  /// Operand rows that have pairs of fp16 numbers in the place of floats: f16_pairs.h.
  bool is_f16_pairs = false;
  /// Of floats that a kernel splits into such pairs: where their range is, a region of scratch.
  std::optional<Tensor> range = {};
  std::int64_t element_bytes() const { return type == DataType::f32 ? 4 : 2; }
  /// Columns of a row are neighbours, or else channels of a pixel are, if the tensor is dense.
  Layout layout() const { return stride.w == 1 ? Layout::nchw : Layout::nhwc; }
  bool operator==(const View&) const = default;
};

/// One spatial axis: output[o] sums over t of input[(o * stride + t * dilation - pad) / upsampling] * weight[t], where
/// the quotient is whole. What lies outside of the input is zero.
struct Axis {
  std::int64_t input = 1, output = 1;  ///< extents
  std::int64_t taps = 1, stride = 1, dilation = 1;
  std::int64_t pad = 0;         ///< before the input; negative: a crop
  std::int64_t upsampling = 1;  ///< the stride of the convolution whose gradient this is
  /// Pixels from the first tap to the last.
  std::int64_t reach() const { return (taps - 1) * dilation; }
  /// Counted from an output that is a multiple of `upsampling` and from the first input that it or one behind it may
  /// meet: output o meets tap t in input (o * stride + t * dilation - lead()) / upsampling, where that is whole.
  std::int64_t lead() const { return positive_modulo(pad, upsampling); }
  /// The first input that output 0 or one behind it may meet; negative: in the padding.
  std::int64_t first_input() const { return (lead() - pad) / upsampling; }
  /// Inputs from there to the last that the first `count` outputs may meet; `count` is a multiple of `upsampling`.
  std::int64_t inputs_met(std::int64_t count) const {
    return ((count - 1) * stride + reach() - lead()) / upsampling + 1;
  }
  /// Outputs that are this far apart meet inputs that are `dilation` apart: each residue of them is a convolution of
  /// its own, without dilation and with undilated_stride().
  std::int64_t dilation_residues() const { return dilation / std::gcd(dilation, stride); }
  std::int64_t undilated_stride() const { return stride / std::gcd(dilation, stride); }
  /// Each output meets one pixel, all of them or every stride-th, and no padding.
  bool is_pointwise() const { return taps == 1 && pad == 0 && output > 0 && (output - 1) * stride < input; }
  bool operator==(const Axis&) const = default;
};

/// Pixels of an axis of dx that are equal modulo the stride of the convolution whose gradient dx is, and therefore meet
/// the same taps. Pixel `pixel` + j * stride is output j + `shift` of the dense convolution that computes all phases;
/// in tap t of its window it meets tap `first_tap` - t * tap_step of the filter, and zero if there is no such tap.
struct Phase {
  std::int64_t pixel = 0, shift = 0, first_tap = 0;
  bool operator==(const Phase&) const = default;
};

/// The phases of an axis that meet any tap, ascending. Pixels of the others are zero before the epilogue.
struct AxisPhases {
  std::int64_t stride = 1;    ///< of the convolution whose gradient this is: from a pixel of a phase to the next
  std::int64_t taps = 1;      ///< of its filter
  std::int64_t tap_step = 1;  ///< from a filter's tap that a phase meets to the next
  std::int64_t pixels = 1;    ///< of dx
  std::vector<Phase> list;
  std::int64_t count() const { return static_cast<std::int64_t>(list.size()); }
  /// Whether some pixels meet no tap. Of kernels that store pixels, those lie behind the pixels of the only phase.
  bool has_zeros() const { return count() < stride; }
  bool is_shifted() const {
    return std::ranges::any_of(list, [](const Phase& phase) { return phase.shift != 0; });
  }
  bool operator==(const AxisPhases&) const = default;
};

/// The phases of a dense convolution that computes a data gradient with a stride, see sub_pixel_problem(). Its output
/// channels are those of every phase, [group][phase of rows][phase of columns][channel] unless columns_innermost. Its
/// taps are the window of all phases.
struct Phases {
  AxisPhases rows, columns;
  /// The kernel stores the pixels of dx, dense, with their epilogue, and zeros where a pixel meets no tap; else sums,
  /// which a pass behind it interleaves.
  bool stores_pixels = false;
  /// Channels are [group][phase of rows][channel][phase of columns]: pixels of a row of dx are neighbouring channels.
  bool columns_innermost = false;
  std::int64_t count() const { return rows.count() * columns.count(); }
  /// Pixels that a kernel which stores pixels writes for an output, the zeros behind it included; else 1.
  std::int64_t pixels_of_output() const {
    return stores_pixels ? rows.stride / rows.count() * (columns.stride / columns.count()) : 1;
  }
  bool operator==(const Phases&) const = default;
};

/// What products are made of. Sums are fp32.
enum class Arithmetic : std::uint8_t {
  fp32,    ///< FMA of floats
  tf32x3,  ///< FMA of floats, or three products of tensor cores of floats that are each split into two TF32 numbers
  tf32,    ///< tensor cores, floats rounded to TF32
  f16x3,   ///< as tf32x3, or three products of pairs of fp16 numbers that a scale for each tensor makes of floats
  f16,     ///< tensor cores
  bf16,    ///< tensor cores
};
std::string_view to_string(Arithmetic arithmetic);
/// Whether tensor cores multiply floats as sums of two numbers each.
constexpr bool splits_floats(Arithmetic arithmetic) {
  return arithmetic == Arithmetic::tf32x3 || arithmetic == Arithmetic::f16x3;
}

/// What is summed over: channels and taps (the result is the output), or images and pixels (the result is the weight,
/// and the output is an operand).
enum class Reduction : std::uint8_t { taps, pixels };

/// y[n, g*k + i, p, q] = epilogue(sum over c, r, s of x[n, g*c + j, ...] * w[g*k + i, j, r, s]), see Axis.
struct Problem {
  std::int64_t n = 1, groups = 1;
  std::int64_t c = 1, k = 1;  ///< input and output channels of a group
  /// Groups of what was asked for that a group is made of: see join_groups().
  std::int64_t joined_groups = 1;
  Axis rows, columns;
  View input, weight, output;  ///< a residual lies like the output
  /// How the caller's weights lie, if `weight` is a dense tensor that a kernel before must make of them.
  std::optional<View> asked_weight = {};
  Arithmetic arithmetic = Arithmetic::fp32;
  Reduction reduction = Reduction::taps;
  Epilogue epilogue;
  /// The activation by whose derivative a gradient's dy is multiplied, with the epilogue's parameters. A kernel of
  /// activation_gradient/ does that first. The others read its result.
  Activation dy_activation = Activation::none;
  std::int64_t alignment = 16;  ///< bytes: every tensor's address is a multiple
  Phases phases;                ///< of a sub-pixel convolution, and then `weight` is the gradient's view; else none

  std::int64_t input_channels() const { return groups * c; }
  std::int64_t output_channels() const { return groups * k; }
  std::int64_t input_plane() const { return rows.input * columns.input; }
  std::int64_t output_plane() const { return rows.output * columns.output; }
  std::int64_t taps() const { return rows.taps * columns.taps; }
  std::int64_t input_elements() const { return n * input_channels() * input_plane(); }
  std::int64_t weight_elements() const { return output_channels() * c * taps(); }
  std::int64_t output_elements() const { return n * output_channels() * output_plane(); }
  bool is_upsampled() const { return rows.upsampling != 1 || columns.upsampling != 1; }
  /// An output of a data gradient meets one tap of so many.
  std::int64_t phases_of_stride() const { return rows.upsampling * columns.upsampling; }
  /// The first pixels of the input meet no tap: those of a data gradient with more padding than its filter reaches.
  bool is_cropped() const { return rows.pad < 0 || columns.pad < 0; }
  bool is_sub_pixel() const { return phases.count() > 0; }
  /// Channels of a group that a pixel of the output has: where pixels of dx are stored, those of one phase.
  std::int64_t pixel_channels() const { return phases.stores_pixels ? k / phases.count() : k; }
  /// dy of a gradient: the input of a data gradient, the output of a weight gradient.
  View& dy() { return reduction == Reduction::taps ? input : output; }
  const View& dy() const { return reduction == Reduction::taps ? input : output; }
  std::int64_t dy_elements() const { return reduction == Reduction::taps ? input_elements() : output_elements(); }
  /// What the kernel writes.
  const View& result() const { return reduction == Reduction::taps ? output : weight; }
  std::int64_t result_elements() const { return reduction == Reduction::taps ? output_elements() : weight_elements(); }
  bool operator==(const Problem&) const = default;
};

/// Strides of a dense tensor with these extents.
View::Strides dense_strides(Layout layout, std::int64_t channels, std::int64_t h, std::int64_t w);

/// What a canonical spec asks for. A data gradient is the convolution of dy whose taps run backwards, whose channels
/// are exchanged and whose input is upsampled by the stride. Throws SpecError (unsupported) for what no kernel of this
/// version computes: an output type that is not dtype, unless it is that of a weight gradient.
Problem lower(const ConvSpec& spec);

/// The convolution whose groups are each `count` of those of `asked`, which divides their number. It multiplies
/// channels of different groups of `asked`, too: a kernel before makes dense weights of which those are zero, or, if
/// the result is the weight, nobody reads them.
Problem join_groups(const Problem& asked, std::int64_t count);

/// The first rule of the forward kernels that a view or axis of `problem` breaks: dense tensors that start at their
/// first element, no crop, no upsampling, a reduction over taps. Empty if none is broken.
std::string_view beyond_dense_forward(const Problem& problem);
/// The same, whatever the weight's strides.
std::string_view beyond_dense_input_and_output(const Problem& problem);
/// The same, also where a stride upsamples the input, and then with a crop.
std::string_view beyond_dense_or_upsampled(const Problem& problem);

/// Strides, first element and groups of a dense weight [K][C/groups][R][S].
View dense_weight(Tensor tensor, DataType type, std::int64_t k, std::int64_t c, std::int64_t r, std::int64_t s);

/// FLOP = 2 * N*K*P*Q * (C/groups)*R*S, and the bytes of every tensor that the operation reads or writes, each counted
/// once, but for what passes read. A data gradient's output is dx, so its FLOP are those of N*C*H*W outputs, or with a
/// stride N*K*P*Q.
struct Work {
  double flop = 0, bytes = 0;
};
Work work(const Problem& problem);

}  // namespace jitconv::codegen
