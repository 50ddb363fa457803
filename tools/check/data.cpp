// See data.h. The choice of ranges for exact data is derived in docs/accuracy.md.
#include "tools/check/data.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "tools/check/number.h"
#include "tools/check/parallel.h"

namespace jitconv::check {
namespace {

/// 64 well-mixed bits of a counter (the finaliser of SplitMix64: Steele, Lea, Flood, OOPSLA 2014).
std::uint64_t bits_of(std::uint64_t seed, std::int64_t index) {
  std::uint64_t z = seed + static_cast<std::uint64_t>(index) * 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

float exact_value(const Fill& fill, std::uint64_t bits) {
  const std::uint32_t chance = static_cast<std::uint32_t>(bits >> 32) & 0x7fffffffu;
  if (chance >= fill.keep) return 0.0f;
  const std::uint64_t magnitude = 1 + (((bits & 0xffffffffu) * fill.range) >> 32);
  const float value = static_cast<float>(magnitude) * fill.scale;
  return (bits >> 63) != 0 ? -value : value;
}

float real_value(const Fill& fill, std::uint64_t bits) {
  // 24 bits and a power of two: exact in fp32, so without an offset the one rounding is that to the tensor's type.
  const std::int32_t steps = static_cast<std::int32_t>(bits >> 40);
  const float unit = fill.kind == DataKind::positive ? static_cast<float>(steps) * 0x1p-24f
                                                     : static_cast<float>(steps - (1 << 23)) * 0x1p-23f;
  return static_cast<float>(round_to(fill.type, static_cast<double>(unit * fill.scale + fill.offset)));
}

/// Ranges of the two factors of the products. What is said about x here holds for dy of gradients.
struct ExactRanges {
  std::uint32_t x = 1, w = 1;
  double density = 1;  // share of x that is not zero
};

constexpr std::uint32_t kAddendRange = 16;  // of bias and residual

/// `steepest`: what a derivative may multiply the first factor by.
ExactRanges exact_ranges(DataType type, std::int64_t length, double steepest) {
  const double terms = static_cast<double>(length);
  if (type == DataType::f32) {
    // Worst case: length * x * w + bias + residual <= 2^24, whatever the signs and the order.
    const double limit = std::ldexp(1.0, 24) - 2 * kAddendRange;
    const double product = limit / (terms * steepest);
    const auto clamp = [](double v) { return static_cast<std::uint32_t>(std::clamp(std::floor(v), 1.0, 32.0)); };
    ExactRanges ranges;
    ranges.x = clamp(std::sqrt(product));
    ranges.w = clamp(product / ranges.x);
    ranges.density = std::min(1.0, product / 2);
    return ranges;
  }
  // 16-bit outputs: a sum's standard deviation is sqrt(length * density) * E[v^2], kept to a quarter of the last
  // integer up to which all are representable: 2^11 for f16 (and far from its overflow at 65504), 2^8 for bf16.
  const std::uint32_t range = type == DataType::f16 ? 4 : 2;
  const double square = type == DataType::f16 ? 7.5 : 2.5;
  const double deviation = type == DataType::f16 ? 512 : 64;
  return {range, range, std::min(1.0, deviation * deviation / (square * square) / terms)};
}

/// Taps of one axis that can meet one pixel of x: those whose distances are multiples of the stride.
std::int64_t meeting_taps(std::int64_t taps, std::int64_t stride, std::int64_t dilation) {
  const std::int64_t apart = stride / std::gcd(stride, dilation);
  return (taps + apart - 1) / apart;
}

/// The power of two nearest to `value`.
float power_of_two(double value) { return static_cast<float>(std::exp2(std::round(std::log2(value)))); }

/// Slopes of leaky_relu that exact data reckon with are powers of two from 1 / kSteepest to kSteepest: f16 holds what
/// they make of dy, and its sums.
constexpr float kSteepest = 8;

bool has_power_of_two_slope(const ConvSpec& spec) {
  const float slope = spec.epilogue.slope;
  return spec.dy_activation == Activation::leaky_relu && is_power_of_two(slope) && slope >= 1 / kSteepest &&
         slope <= kSteepest;
}

/// What the derivative is computed from. Most of it lets dy through, so that few sums are zero.
Fill saved_fill(const ConvSpec& spec, Fill fill) {
  const bool exact = fill.kind == DataKind::exact;
  if (!exact) fill.kind = DataKind::random;
  fill.range = 4;
  fill.scale = exact ? 1 : 4;
  const Epilogue& epilogue = spec.epilogue;
  if (spec.dy_activation == Activation::relu || spec.dy_activation == Activation::leaky_relu) {
    fill.offset = exact ? 3 : 2;
  } else if (spec.dy_activation == Activation::clamp) {
    constexpr float kFarthest = 64;  // all types have integers so large
    const float width = epilogue.clamp_max - epilogue.clamp_min;
    fill.offset = std::round(std::clamp(epilogue.clamp_min / 2 + epilogue.clamp_max / 2, -kFarthest, kFarthest));
    if (!exact) fill.scale = power_of_two(static_cast<double>(std::clamp(width, 1.0f, kFarthest)));
  }
  return fill;
}

}  // namespace

std::string_view to_string(DataKind kind) {
  switch (kind) {
    case DataKind::exact:
      return "exact";
    case DataKind::random:
      return "random";
    case DataKind::positive:
      return "positive";
  }
  return "invalid";
}

float Fill::operator()(std::int64_t index) const {
  const std::uint64_t bits = bits_of(seed, index);
  return kind == DataKind::exact ? exact_value(*this, bits) + offset : real_value(*this, bits);
}

Data make_data(const ConvSpec& spec, DataKind kind, std::uint64_t seed) {
  const std::int64_t length = std::max<std::int64_t>(1, reduction_length(spec));
  Fill base;
  base.kind = kind;
  base.type = spec.dtype;
  Data data{base, base, base, base, base, saved_fill(spec, base)};
  data.residual.type = output_type(spec);
  // Seeds far apart, so that no two tensors are the same sequence, shifted.
  std::int64_t tensor = 0;
  for (Fill* fill : {&data.x, &data.w, &data.bias, &data.residual, &data.dy, &data.saved})
    fill->seed = bits_of(seed, ++tensor);
  // The factors of the products. Sums of dy alone are a result, too: dy is thinned and scaled to suit it.
  const bool weights = spec.operation == Operation::weight_gradient;
  Fill& thinned = spec.operation == Operation::forward ? data.x : data.dy;
  Fill& full = weights ? data.x : data.w;
  if (kind == DataKind::exact) {
    // dy is a multiple of what makes dz an integer.
    const float slope = has_power_of_two_slope(spec) ? spec.epilogue.slope : 1;
    const ExactRanges ranges = exact_ranges(spec.dtype, length, static_cast<double>(std::max(slope, 1 / slope)));
    if (slope < 1) thinned.scale = 1 / slope;
    thinned.range = ranges.x;
    thinned.keep = static_cast<std::uint32_t>(std::ldexp(ranges.density, 31));
    full.range = ranges.w;
    data.bias.range = data.residual.range = kAddendRange;
  } else {
    // Products of two values uniform in [-1, 1) have the variance 1/9.
    (weights ? data.dy : data.w).scale = power_of_two(3 / std::sqrt(static_cast<double>(length)));
  }
  return data;
}

bool has_exact_dz(const ConvSpec& spec) {
  switch (spec.dy_activation) {
    case Activation::none:
    case Activation::relu:
    case Activation::clamp:
      return true;
    default:
      return has_power_of_two_slope(spec);
  }
}

std::int64_t reduction_length(const ConvSpec& spec) {
  const WeightShape& w = spec.weight;
  switch (spec.operation) {
    case Operation::forward:
      return w.c * w.r * w.s;
    case Operation::data_gradient:
      return w.k / spec.groups * meeting_taps(w.r, spec.stride.h, spec.dilation.h) *
             meeting_taps(w.s, spec.stride.w, spec.dilation.w);
    case Operation::weight_gradient: {
      const TensorShape y = output_shape(spec);
      return y.n * y.h * y.w;
    }
  }
  return 0;
}

std::int64_t element_count(const TensorShape& shape) { return shape.n * shape.c * shape.h * shape.w; }
std::int64_t element_count(const WeightShape& shape) { return shape.k * shape.c * shape.r * shape.s; }

void fill_elements(const Fill& fill, std::int64_t first, std::span<std::byte> out) {
  const std::int64_t size = element_bytes(fill.type);
  parallel_for(static_cast<std::int64_t>(out.size()) / size, 1 << 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const float value = fill(first + i);
      std::byte* const at = out.data() + i * size;
      if (fill.type == DataType::f32) {
        std::memcpy(at, &value, sizeof value);
      } else {
        const double exact = static_cast<double>(value);
        const std::uint16_t bits = fill.type == DataType::f16 ? to_f16(exact) : to_bf16(exact);
        std::memcpy(at, &bits, sizeof bits);
      }
    }
  });
}

std::vector<float> values_of(const Fill& fill, std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  parallel_for(count, 1 << 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) values[static_cast<std::size_t>(i)] = fill(i);
  });
  return values;
}

}  // namespace jitconv::check
