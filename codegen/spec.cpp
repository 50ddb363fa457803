// What a ConvSpec means: which values can be computed at all, the extents of its output, its canonical form and the
// work it stands for. Text is spec_text.cpp's; how the convolution is computed is plan.cpp's.
#include "jitconv/spec.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "codegen/plan.h"
#include "codegen/spec_fields.h"
#include "fmt/format.h"
#include "jitconv/error.h"

namespace jitconv {
namespace {

/// Coordinates in the padded input stay below this, so kernels hold them in 32-bit registers.
constexpr std::int64_t kMaxExtent = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMaxTensorBytes = std::int64_t{1} << 62;
constexpr std::int64_t kMaxAlignment = 256;

void require_range(std::string_view field, std::string_view what, std::int64_t value, std::int64_t least) {
  if (value >= least && value <= kMaxExtent) return;
  throw SpecError(std::string(field), fmt::format("{} is {}, must be from {} to {}", what, value, least, kMaxExtent));
}

template <typename Enum>
void require_known(std::string_view field, Enum value) {
  if (codegen::is_known(value)) return;
  throw SpecError(std::string(field), fmt::format("{} has the unknown value {}, must be below {}", field,
                                                  static_cast<int>(value), codegen::names_of(value).size()));
}

void require_finite(std::string_view field, float value) {
  if (std::isfinite(value)) return;
  throw SpecError(std::string(field), fmt::format("{} is {}, must be finite", field, value));
}

void check_enums(const ConvSpec& spec) {
  require_known("operation", spec.operation);
  require_known("dtype", spec.dtype);
  require_known("output_dtype", spec.output_dtype);
  require_known("input_layout", spec.input_layout);
  require_known("output_layout", spec.output_layout);
  require_known("math", spec.math);
  require_known("epilogue.activation", spec.epilogue.activation);
  require_known("dy_activation", spec.dy_activation);
}

void check_ranges(const ConvSpec& spec) {
  require_range("input", "input n", spec.input.n, 0);
  require_range("input", "input c", spec.input.c, 1);
  require_range("input", "input h", spec.input.h, 1);
  require_range("input", "input w", spec.input.w, 1);
  require_range("weight", "weight k", spec.weight.k, 1);
  require_range("weight", "weight c", spec.weight.c, 1);
  require_range("weight", "weight r", spec.weight.r, 1);
  require_range("weight", "weight s", spec.weight.s, 1);
  require_range("stride", "stride h", spec.stride.h, 1);
  require_range("stride", "stride w", spec.stride.w, 1);
  require_range("padding", "padding top", spec.padding.top, 0);
  require_range("padding", "padding bottom", spec.padding.bottom, 0);
  require_range("padding", "padding left", spec.padding.left, 0);
  require_range("padding", "padding right", spec.padding.right, 0);
  require_range("dilation", "dilation h", spec.dilation.h, 1);
  require_range("dilation", "dilation w", spec.dilation.w, 1);
  require_range("groups", "groups", spec.groups, 1);
}

void check_channels(const ConvSpec& spec) {
  const std::int64_t c = spec.input.c, k = spec.weight.k, groups = spec.groups;
  if (c % groups != 0) {
    throw SpecError("groups", fmt::format("groups is {}, must divide the {} input channels", groups, c));
  }
  if (k % groups != 0) {
    throw SpecError("groups", fmt::format("groups is {}, must divide the {} output channels", groups, k));
  }
  if (spec.weight.c != c / groups) {
    throw SpecError("weight", fmt::format("weight c is {}, must be {} = {} input channels / {} groups", spec.weight.c,
                                          c / groups, c, groups));
  }
}

/// One spatial axis. With every number at most 2^31 - 1 none of these sums and products exceeds 2^62 + 2.
struct SpecAxis {
  std::int64_t extent, taps, stride, before, after, dilation;

  std::int64_t span() const { return dilation * (taps - 1) + 1; }
  std::int64_t padded() const { return extent + before + after; }
  std::int64_t outputs() const { return (padded() - span()) / stride + 1; }
};

SpecAxis vertical(const ConvSpec& spec) {
  return {spec.input.h, spec.weight.r, spec.stride.h, spec.padding.top, spec.padding.bottom, spec.dilation.h};
}

SpecAxis horizontal(const ConvSpec& spec) {
  return {spec.input.w, spec.weight.s, spec.stride.w, spec.padding.left, spec.padding.right, spec.dilation.w};
}

void check_windows(const ConvSpec& spec) {
  const SpecAxis y = vertical(spec), x = horizontal(spec);
  if (y.padded() > kMaxExtent || x.padded() > kMaxExtent) {
    throw SpecError("padding",
                    fmt::format("padding {},{},{},{} makes the padded input {}x{}, must be at most {} each way",
                                y.before, y.after, x.before, x.after, y.padded(), x.padded(), kMaxExtent));
  }
  if (y.span() > y.padded() || x.span() > x.padded()) {
    throw SpecError("weight",
                    fmt::format("weight {}x{} with dilation ({},{}) spans {}x{}, larger than the padded input {}x{}: "
                                "the output size (padded - span) / stride + 1 would be below 1",
                                y.taps, x.taps, y.dilation, x.dilation, y.span(), x.span(), y.padded(), x.padded()));
  }
}

TensorShape output_of(const ConvSpec& spec) {
  return {spec.input.n, spec.weight.k, vertical(spec).outputs(), horizontal(spec).outputs()};
}

/// `extents` begin with the number of images or filters. Strides are computed where there are no images, too, so that
/// one image must not be too large either.
void check_bytes(std::string_view field, const std::array<std::int64_t, 4>& extents, DataType type) {
  std::int64_t bytes = element_bytes(type);
  bool overflow = false;
  for (const std::int64_t extent : extents)
    overflow = overflow || __builtin_mul_overflow(bytes, std::max<std::int64_t>(extent, 1), &bytes);
  if (!overflow && bytes <= kMaxTensorBytes) return;
  throw SpecError(std::string(field), fmt::format("{}{} {}x{}x{}x{} of {} takes more than 2^62 bytes",
                                                  extents[0] == 0 ? "an image of " : "", field, extents[0], extents[1],
                                                  extents[2], extents[3], to_string(type)));
}

void check_sizes(const ConvSpec& spec) {
  const TensorShape& x = spec.input;
  const WeightShape& w = spec.weight;
  const TensorShape y = output_of(spec);
  check_bytes("input", {x.n, x.c, x.h, x.w}, spec.dtype);
  check_bytes("weight", {w.k, w.c, w.r, w.s},
              spec.operation == Operation::weight_gradient ? output_type(spec) : spec.dtype);
  check_bytes("output", {y.n, y.c, y.h, y.w}, spec.operation == Operation::forward ? output_type(spec) : spec.dtype);
}

void check_epilogue(const ConvSpec& spec) {
  const Epilogue& epilogue = spec.epilogue;
  require_finite("epilogue.slope", epilogue.slope);
  require_finite("epilogue.clamp_min", epilogue.clamp_min);
  require_finite("epilogue.clamp_max", epilogue.clamp_max);
  if (epilogue.clamp_min > epilogue.clamp_max) {
    throw SpecError("epilogue.clamp_min",
                    fmt::format("epilogue.clamp_min is {}, must not exceed epilogue.clamp_max, {}", epilogue.clamp_min,
                                epilogue.clamp_max));
  }
  if (spec.operation == Operation::weight_gradient && epilogue.activation != Activation::none) {
    throw SpecError("epilogue.activation", fmt::format("epilogue.activation is {}, must be none for a weight_gradient",
                                                       to_string(epilogue.activation)));
  }
}

void check_dy_activation(const ConvSpec& spec) {
  if (spec.dy_activation == Activation::none) return;
  if (spec.operation == Operation::forward) {
    throw SpecError("dy_activation", fmt::format("dy_activation is {}, must be none for forward, which has no dy",
                                                 to_string(spec.dy_activation)));
  }
  if (spec.dy_activation == Activation::leaky_relu && !(spec.epilogue.slope > 0)) {
    throw SpecError("epilogue.slope",
                    fmt::format("epilogue.slope is {}, must be above 0 for a dy_activation of leaky_relu, so that y "
                                "has the sign of what the activation was applied to",
                                spec.epilogue.slope));
  }
}

void check_alignment(const ConvSpec& spec) {
  const DataType output = output_type(spec);
  const DataType largest = element_bytes(output) > element_bytes(spec.dtype) ? output : spec.dtype;
  const std::int64_t least = element_bytes(largest);
  const std::int64_t value = spec.alignment;
  const bool power_of_two = value > 0 && std::has_single_bit(static_cast<std::uint64_t>(value));
  if (power_of_two && value >= least && value <= kMaxAlignment) return;
  throw SpecError("alignment", fmt::format("alignment is {}, must be a power of two from {} (one {}) to {}", value,
                                           least, to_string(largest), kMaxAlignment));
}

}  // namespace

std::int64_t element_bytes(DataType type) { return type == DataType::f32 ? 4 : 2; }

DataType output_type(const ConvSpec& spec) {
  switch (spec.output_dtype) {
    case OutputType::same:
      break;
    case OutputType::f32:
      return DataType::f32;
    case OutputType::f16:
      return DataType::f16;
    case OutputType::bf16:
      return DataType::bf16;
  }
  return spec.dtype;
}

void validate(const ConvSpec& spec) {
  check_enums(spec);
  check_ranges(spec);
  check_channels(spec);
  check_windows(spec);
  check_sizes(spec);
  check_epilogue(spec);
  check_dy_activation(spec);
  check_alignment(spec);
}

TensorShape output_shape(const ConvSpec& spec) {
  validate(spec);
  return output_of(spec);
}

TensorShape result_shape(const ConvSpec& spec) {
  const TensorShape y = output_shape(spec);
  switch (spec.operation) {
    case Operation::forward:
      return y;
    case Operation::data_gradient:
      return spec.input;
    case Operation::weight_gradient:
      return {spec.weight.k, spec.weight.c, spec.weight.r, spec.weight.s};
  }
  return {};
}

Layout result_layout(const ConvSpec& spec) {
  switch (spec.operation) {
    case Operation::forward:
      return spec.output_layout;
    case Operation::data_gradient:
      return spec.input_layout;
    case Operation::weight_gradient:
      return Layout::nchw;
  }
  return {};
}

namespace codegen {
namespace {

/// Sets what cannot matter on one axis: the dilation of a single tap, padding behind the last window, the stride of a
/// single window. Output size and values stay as they are.
void canonicalise_axis(std::int64_t taps, const SpecAxis& axis, std::int64_t& dilation, std::int64_t& after,
                       std::int64_t& stride) {
  if (taps == 1) dilation = 1;
  const std::int64_t unused = (axis.padded() - axis.span()) % axis.stride;
  const std::int64_t removed = unused < after ? unused : after;
  after -= removed;
  if (axis.outputs() == 1 && removed == unused) stride = 1;
}

/// Sets layouts that cannot matter: one channel lies in memory alike in both, and so do images of one pixel. Matrices,
/// whose images are all of one pixel, are NHWC, as their rows are channels; not those of gradients of weights.
void canonicalise_layouts(const TensorShape& x, const TensorShape& y, ConvSpec& spec) {
  const auto one_pixel = [](const TensorShape& shape) { return shape.h == 1 && shape.w == 1; };
  const bool matrix = one_pixel(x) && one_pixel(y) && x.c > 1 && y.c > 1 && spec.groups == 1 &&
                      spec.operation != Operation::weight_gradient;
  for (const auto& [shape, layout] : {std::pair(&x, &spec.input_layout), std::pair(&y, &spec.output_layout)})
    if (shape->c == 1 || one_pixel(*shape)) *layout = matrix ? Layout::nhwc : Layout::nchw;
}

}  // namespace

ConvSpec canonical(const ConvSpec& spec) {
  const TensorShape output = output_shape(spec);
  ConvSpec result = spec;
  canonicalise_axis(spec.weight.r, vertical(spec), result.dilation.h, result.padding.bottom, result.stride.h);
  canonicalise_axis(spec.weight.s, horizontal(spec), result.dilation.w, result.padding.right, result.stride.w);
  canonicalise_layouts(spec.input, output, result);
  if (output_type(spec) == spec.dtype) result.output_dtype = OutputType::same;

  // Without images there is no dy to multiply, and no saved to read.
  if (spec.input.n == 0) result.dy_activation = Activation::none;

  const Epilogue unused;
  Epilogue& epilogue = result.epilogue;
  const auto uses = [&](Activation activation) {
    return epilogue.activation == activation || result.dy_activation == activation;
  };
  if (!uses(Activation::leaky_relu)) epilogue.slope = unused.slope;
  if (!uses(Activation::clamp)) {
    epilogue.clamp_min = unused.clamp_min;
    epilogue.clamp_max = unused.clamp_max;
  }
  // -0 compares equal to 0 and yet prints differently: one of them, so that equal specs have equal sources.
  epilogue.slope += 0.0f;
  epilogue.clamp_min += 0.0f;
  epilogue.clamp_max += 0.0f;
  return result;
}

}  // namespace codegen
}  // namespace jitconv
