// See reference.h. Plain loops in the order of the definition; the only liberty taken is that outputs are spread over
// threads.
#include "tools/check/reference.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tools/check/parallel.h"

namespace jitconv::check {
namespace {

/// Distances in memory between neighbours along each axis.
struct Strides {
  std::int64_t n, c, h, w;
  std::int64_t offset(std::int64_t in, std::int64_t ic, std::int64_t ih, std::int64_t iw) const {
    return in * n + ic * c + ih * h + iw * w;
  }
};

Strides strides_of(const TensorShape& shape, Layout layout) {
  if (layout == Layout::nhwc) return {shape.h * shape.w * shape.c, 1, shape.w * shape.c, shape.c};
  return {shape.c * shape.h * shape.w, shape.h * shape.w, shape.w, 1};
}

TensorShape locate(const TensorShape& shape, Layout layout, std::int64_t position) {
  const auto take = [&position](std::int64_t extent) {
    const std::int64_t index = position % extent;
    position /= extent;
    return index;
  };
  TensorShape at;
  if (layout == Layout::nhwc) {
    at.c = take(shape.c);
    at.w = take(shape.w);
    at.h = take(shape.h);
  } else {
    at.w = take(shape.w);
    at.h = take(shape.h);
    at.c = take(shape.c);
  }
  at.n = position;
  return at;
}

Expected one_output(const ConvSpec& spec, const Operands& operands, const TensorShape& output, std::int64_t position) {
  const TensorShape at = locate(output, spec.output_layout, position);
  const Strides x_strides = strides_of(spec.input, spec.input_layout);
  const std::int64_t channels = spec.weight.c, k = at.c;
  const std::int64_t group = k / (spec.weight.k / spec.groups);
  Expected result;
  for (std::int64_t c = 0; c < channels; ++c) {
    for (std::int64_t r = 0; r < spec.weight.r; ++r) {
      const std::int64_t row = at.h * spec.stride.h - spec.padding.top + r * spec.dilation.h;
      if (row < 0 || row >= spec.input.h) continue;
      for (std::int64_t s = 0; s < spec.weight.s; ++s) {
        const std::int64_t column = at.w * spec.stride.w - spec.padding.left + s * spec.dilation.w;
        if (column < 0 || column >= spec.input.w) continue;
        const double product = operands.x[x_strides.offset(at.n, group * channels + c, row, column)] *
                               operands.w[((k * channels + c) * spec.weight.r + r) * spec.weight.s + s];
        result.z += product;
        result.magnitude += std::fabs(product);
        ++result.terms;
      }
    }
  }
  const auto add = [&result](double value) {
    result.z += value;
    result.addends += std::fabs(value);
  };
  if (spec.epilogue.bias) add(operands.bias[k]);
  if (spec.epilogue.residual) add(operands.residual[position]);
  result.y = activate(spec.epilogue, result.z);
  return result;
}

}  // namespace

double activate(const Epilogue& epilogue, double x) {
  switch (epilogue.activation) {
    case Activation::none:
      return x;
    case Activation::relu:
      return std::isnan(x) ? x : std::max(x, 0.0);
    case Activation::leaky_relu:
      return x >= 0 ? x : static_cast<double>(epilogue.slope) * x;
    case Activation::gelu_erf:
      return x / 2 * std::erfc(-x / std::sqrt(2.0));
    case Activation::gelu_tanh: {
      const double inner = std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x);
      return x / 2 * (1 + std::tanh(inner));
    }
    case Activation::silu:
      return x / (1 + std::exp(-x));
    case Activation::sigmoid:
      return 1 / (1 + std::exp(-x));
    case Activation::tanh:
      return std::tanh(x);
    case Activation::hardswish:
      return x * std::min(std::max(x + 3, 0.0), 6.0) / 6;
    case Activation::clamp:
      if (std::isnan(x)) return x;
      return std::min(std::max(x, static_cast<double>(epilogue.clamp_min)), static_cast<double>(epilogue.clamp_max));
  }
  return std::nan("");
}

std::vector<Expected> reference_at(const ConvSpec& spec, const Operands& operands,
                                   std::span<const std::int64_t> positions) {
  const TensorShape output = output_shape(spec);
  std::vector<Expected> results(positions.size());
  const std::int64_t grain = std::max<std::int64_t>(1, 100'000 / reduction_length(spec));
  parallel_for(static_cast<std::int64_t>(positions.size()), grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::size_t at = static_cast<std::size_t>(i);
      results[at] = one_output(spec, operands, output, positions[at]);
    }
  });
  return results;
}

std::vector<Expected> reference(const ConvSpec& spec, const Operands& operands) {
  std::vector<std::int64_t> positions(static_cast<std::size_t>(element_count(output_shape(spec))));
  std::iota(positions.begin(), positions.end(), std::int64_t{0});
  return reference_at(spec, operands, positions);
}

std::vector<std::int64_t> sample_positions(const ConvSpec& spec, std::int64_t count, std::uint64_t seed) {
  const TensorShape output = output_shape(spec);
  const std::int64_t total = element_count(output);
  std::vector<std::int64_t> positions;
  if (total <= count) {
    positions.resize(static_cast<std::size_t>(total));
    std::iota(positions.begin(), positions.end(), std::int64_t{0});
    return positions;
  }
  const Strides strides = strides_of(output, spec.output_layout);
  for (std::int64_t n : {std::int64_t{0}, output.n - 1}) {
    for (std::int64_t k : {std::int64_t{0}, output.c - 1}) {
      for (std::int64_t p : {std::int64_t{0}, output.h / 2, output.h - 1}) {
        for (std::int64_t q : {std::int64_t{0}, output.w / 2, output.w - 1}) {
          positions.push_back(strides.offset(n, k, p, q));
        }
      }
    }
  }
  Fill random;
  random.kind = DataKind::positive;
  random.seed = seed;
  std::int64_t draws = 0;
  const auto draw = [&](std::int64_t extent) {
    // Two draws of 24 bits reach every index below 2^48.
    const double high = static_cast<double>(random(draws++)), low = static_cast<double>(random(draws++));
    const double fraction = high + std::ldexp(low, -24);
    return std::min(extent - 1, static_cast<std::int64_t>(fraction * static_cast<double>(extent)));
  };
  // Every other sample on a border of its plane, where padding, row ends and tile ends are.
  const auto draw_axis = [&](std::int64_t extent) {
    const std::int64_t choice = draw(8);
    return choice == 0 ? 0 : choice == 1 ? extent - 1 : draw(extent);
  };
  for (std::int64_t i = static_cast<std::int64_t>(positions.size()); i < count; ++i) {
    const std::int64_t n = draw(output.n), k = draw(output.c), p = draw_axis(output.h), q = draw_axis(output.w);
    positions.push_back(strides.offset(n, k, p, q));
  }
  std::sort(positions.begin(), positions.end());
  positions.erase(std::unique(positions.begin(), positions.end()), positions.end());
  return positions;
}

TensorShape coordinates(const ConvSpec& spec, std::int64_t position) {
  return locate(output_shape(spec), spec.output_layout, position);
}

}  // namespace jitconv::check
