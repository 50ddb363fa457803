// The description of one 2-D convolution, in plain values.
//
// ConvSpec holds every property that can change the generated kernel and nothing else: no pointers, no device, no
// tuning. validate() says whether the convolution can be computed; compile() in jitconv/kernel.h turns it into a
// kernel.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "jitconv/export.h"

namespace jitconv {

/// The element type of every tensor, unless ConvSpec::output_dtype names another for the result and residual. Sums are
/// always accumulated in fp32.
enum class DataType : std::uint8_t { f32, f16, bf16 };

/// The element type of an operation's result and of residual.
enum class OutputType : std::uint8_t {
  same,  ///< ConvSpec::dtype
  f32,
  f16,
  bf16,
};

/// What is computed of a convolution y = conv(x, w). dy, dx and dw have the shapes of y, x and w:
///   forward          y[n,k,p,q] = sum over c,r,s of x[n, g*C/groups + c, i, j] * w[k,c,r,s]
///   data_gradient    dx[n, g*C/groups + c, i, j] = sum over k,p,q,r,s of dy[n,k,p,q] * w[k,c,r,s]
///   weight_gradient  dw[k,c,r,s] = sum over n,p,q of dy[n,k,p,q] * x[n, g*C/groups + c, i, j]
/// with i = p*stride.h - top + r*dilation.h, j = q*stride.w - left + s*dilation.w, and the group g = k / (K/groups). A
/// sum has those terms whose indices meet these equations and lie in their tensors. A transposed convolution is the
/// data_gradient of the convolution whose x has the shape of its result.
enum class Operation : std::uint8_t { forward, data_gradient, weight_gradient };

/// The memory order of x, y and residual; the last letter is contiguous. Filters are always K, C/groups, R, S.
enum class Layout : std::uint8_t { nchw, nhwc };

/// The accuracy that a kernel promises. docs/accuracy.md has the bounds.
enum class MathMode : std::uint8_t {
  ieee,    ///< fp32 FMA only
  fp32,    ///< an error against fp64 that is no larger than that of an fp32 FMA loop
  tf32,    ///< operands may be rounded to TF32: tensor cores multiply once, and not three times as for fp32
  fp16x3,  ///< fp32 plus 2^-38 * (|w| * largest |x| + |x| * largest |w|) for each product: pairs of fp16 numbers
};

/// The last step of the epilogue. x is the sum, to which bias and residual have been added.
enum class Activation : std::uint8_t {
  none,
  relu,        ///< max(x, 0)
  leaky_relu,  ///< x >= 0 ? x : slope * x
  gelu_erf,    ///< x/2 * (1 + erf(x / sqrt 2)), Hendrycks & Gimpel, arXiv 1606.08415
  gelu_tanh,   ///< x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))), same source
  silu,        ///< x / (1 + exp(-x))
  sigmoid,     ///< 1 / (1 + exp(-x))
  tanh,
  hardswish,  ///< x * min(max(x + 3, 0), 6) / 6, Howard et al., arXiv 1905.02244
  clamp,      ///< min(max(x, clamp_min), clamp_max)
};

/// The extents of x or y in elements: images, channels, rows, columns. Their order here says nothing about memory.
struct TensorShape {
  std::int64_t n = 0, c = 0, h = 0, w = 0;
  auto operator<=>(const TensorShape&) const = default;
};

/// The extents of w as PyTorch stores it, [k][c][r][s]: output channels, input channels / groups, rows, columns.
struct WeightShape {
  std::int64_t k = 0, c = 0, r = 0, s = 0;
  auto operator<=>(const WeightShape&) const = default;
};

/// A vertical and a horizontal amount, in elements. One number sets both.
struct Size2 {
  std::int64_t h = 1, w = 1;
  constexpr Size2() = default;
  constexpr Size2(std::int64_t both) : h(both), w(both) {}
  constexpr Size2(std::int64_t height, std::int64_t width) : h(height), w(width) {}
  auto operator<=>(const Size2&) const = default;
};

/// Rows and columns of zeros around the input: {all}, {height, width} or {top, bottom, left, right}.
struct Padding {
  std::int64_t top = 0, bottom = 0, left = 0, right = 0;
  constexpr Padding() = default;
  constexpr Padding(std::int64_t all) : top(all), bottom(all), left(all), right(all) {}
  constexpr Padding(std::int64_t height, std::int64_t width) : top(height), bottom(height), left(width), right(width) {}
  constexpr Padding(std::int64_t t, std::int64_t b, std::int64_t l, std::int64_t r)
      : top(t), bottom(b), left(l), right(r) {}
  auto operator<=>(const Padding&) const = default;
};

/// What happens to a sum before it is stored: y = activation(sum + bias[k] + residual). Of a data_gradient, dx takes
/// the place of y and C that of K. Of a weight_gradient, dw = sum + residual, so that `residual`, which may be dw
/// itself, accumulates; there is no activation, and `bias` asks for a second result, db[k] = sum over n,p,q of
/// dy[n,k,p,q].
struct Epilogue {
  bool bias = false;      ///< K elements; C of Operation::data_gradient
  bool residual = false;  ///< a tensor of the result's shape, layout and type
  Activation activation = Activation::none;
  float slope = 0.01f;     ///< used by leaky_relu, also that of ConvSpec::dy_activation
  float clamp_min = 0.0f;  ///< used by clamp, also that of ConvSpec::dy_activation
  float clamp_max = 6.0f;  ///< used by clamp, also that of ConvSpec::dy_activation
  bool operator==(const Epilogue&) const = default;
};

/// One convolution (cross-correlation, as in PyTorch and cuDNN):
///   y[n,k,p,q] = sum over c,r,s of x[n, g*C/groups + c, p*stride.h - top + r*dilation.h,
///                                    q*stride.w - left + s*dilation.w] * w[k,c,r,s],   g = k / (K/groups).
/// Or one of its gradients: see Operation. Shapes, stride, padding, dilation and layouts are always those of this
/// formula: input is the shape of x and dx, weight that of w and dw.
struct ConvSpec {
  Operation operation = Operation::forward;
  TensorShape input;
  WeightShape weight;
  Size2 stride{1};
  Padding padding;
  Size2 dilation{1};
  std::int64_t groups = 1;
  DataType dtype = DataType::f32;
  /// There are kernels for `same`, or the same type by its name, and for a weight_gradient, whose dw, db and residual
  /// have this type, also for f32.
  OutputType output_dtype = OutputType::same;
  Layout input_layout = Layout::nchw;   ///< of x and dx
  Layout output_layout = Layout::nchw;  ///< of y and dy; a residual lies as the result
  MathMode math = MathMode::fp32;
  Epilogue epilogue;
  /// Every tensor's pointer is a multiple of this many bytes; launch() checks it. A power of two from the largest
  /// element's size to 256. Every allocation satisfies 16. Tensors that start inside an allocation may need the
  /// element's size.
  std::int64_t alignment = 16;
  /// For gradients: the activation f of the convolution whose gradient is computed, y = f(z) with z = conv(x, w) + bias
  /// + residual. Where it is not none, dz = dy * f'(z) takes the place of dy in the gradient, and db is the sum of dz;
  /// dz is rounded to dtype. f' is computed from LaunchArgs::saved, which holds
  ///   y of relu (dz = y <= 0 ? 0 : dy), leaky_relu (y > 0 ? dy : slope * dy) and clamp (y <= clamp_min ||
  ///     y >= clamp_max ? 0 : dy), as it was stored,
  ///   z of gelu_erf, gelu_tanh, silu, sigmoid, tanh and hardswish (z <= -3 ? 0 : z < 3 ? dy * (z / 3 + 1/2) : dy).
  /// These are PyTorch's formulas on a GPU, at the bounds and for a NaN in saved, too; clamp is its hardtanh. Slope and
  /// limits are epilogue's; an activation of a data_gradient's own result shares them.
  Activation dy_activation = Activation::none;

  bool operator==(const ConvSpec&) const = default;
};

/// The size of one element in bytes: 4 or 2.
JITCONV_API std::int64_t element_bytes(DataType type);

/// The type of the result's elements: what output_dtype says, dtype if that is `same`. Throws nothing.
JITCONV_API DataType output_type(const ConvSpec& spec);

/// The extents of the result in memory's names: those of y, of dx, or K, C/groups, R, S of dw as n, c, h, w. Throws
/// SpecError as validate() does.
JITCONV_API TensorShape result_shape(const ConvSpec& spec);

/// The memory order of the result: output_layout, input_layout, or for dw nchw.
JITCONV_API Layout result_layout(const ConvSpec& spec);

/// The extents of y and dy, whatever the operation: N, K, P, Q with
/// P = (H + top + bottom - dilation.h*(R-1) - 1) / stride.h + 1, where the quotient is rounded down, and Q likewise.
/// Throws SpecError as validate() does.
JITCONV_API TensorShape output_shape(const ConvSpec& spec);

/// Throws SpecError (invalid_spec) if the convolution cannot be computed. The message names the field, its value and
/// the rule. It refuses extents below 1 (N may be 0); any extent, stride, padding, dilation or padded extent above
/// 2^31 - 1; channels that groups does not divide; a dilated filter larger than the padded input; tensors or images of
/// more than 2^62 bytes; enums out of range; clamp_min above clamp_max; a slope or clamp limit that is not finite; an
/// activation of a weight_gradient; a dy_activation of forward, or one of leaky_relu whose slope is not above 0 (y
/// would not say the sign of z); an alignment that is not a power of two from the largest element's size to 256. That
/// this version has a kernel for a valid spec is compile()'s matter.
JITCONV_API void validate(const ConvSpec& spec);

/// One line with every field: `input=8,32,512,512 weight=64,32,5,9 stride=1,1 padding=2,2,4,4 ...`. parse_spec() reads
/// it back.
JITCONV_API std::string to_string(const ConvSpec& spec);

/// Reads the line that to_string() writes. Fields that are absent have their defaults. Throws SpecError (invalid_spec),
/// which names the unknown key or the unreadable value. Does not validate the result.
/// Also reads PyTorch's words, capitals or not: fp32, float32, float, fp16, float16, half, bfloat16, channels_last,
/// contiguous, channels_first, gelu, and padding=same or padding=valid. padding=same follows PyTorch: it needs stride 1
/// and the filter's extents in the same text.
JITCONV_API ConvSpec parse_spec(std::string_view text);

/// The enumerator's name, as parse_spec() reads it.
JITCONV_API std::string_view to_string(Operation value);
/// The enumerator's name, as parse_spec() reads it.
JITCONV_API std::string_view to_string(DataType value);
/// The enumerator's name, as parse_spec() reads it.
JITCONV_API std::string_view to_string(OutputType value);
/// The enumerator's name, as parse_spec() reads it.
JITCONV_API std::string_view to_string(Layout value);
/// The enumerator's name, as parse_spec() reads it.
JITCONV_API std::string_view to_string(MathMode value);
/// The enumerator's name, as parse_spec() reads it.
JITCONV_API std::string_view to_string(Activation value);

}  // namespace jitconv
