// See reference.h. Plain loops in the order of the definition; the only liberty taken is that elements are spread over
// threads.
#include "tools/check/reference.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "tools/check/activation_gradient.h"
#include "tools/check/parallel.h"

namespace jitconv::check {
namespace {

/// Tensors by the indices of the definition, and sums over their products.
class Definition {
 public:
  Definition(const ConvSpec& spec, const Operands& operands)
      : spec_(spec),
        operands_(operands),
        y_(output_shape(spec)),
        x_strides_(strides_of(spec.input, spec.input_layout)),
        y_strides_(strides_of(y_, spec.output_layout)),
        result_elements_(element_count(result_shape(spec))) {}

  Expected at(std::int64_t position) const {
    if (position >= result_elements_) return channel_sum(position - result_elements_);
    const TensorShape at = coordinates(spec_, position);
    switch (spec_.operation) {
      case Operation::forward:
        return finished(output(at), at.c, position);
      case Operation::data_gradient:
        return finished(data_gradient(at), at.c, position);
      case Operation::weight_gradient:
        return finished(weight_gradient(at), at.n, position);
    }
    throw std::invalid_argument("unknown operation");
  }

 private:
  double x(std::int64_t n, std::int64_t c, std::int64_t i, std::int64_t j) const {
    return operands_.x[x_strides_.offset(n, c, i, j)];
  }
  /// dy, or what an activation's derivative makes of it.
  ActivationGradient dz(std::int64_t n, std::int64_t k, std::int64_t p, std::int64_t q) const {
    const std::int64_t at = y_strides_.offset(n, k, p, q);
    if (spec_.dy_activation == Activation::none) return {.value = operands_.dy[at]};
    return activation_gradient(spec_, operands_.dy[at], operands_.saved[at]);
  }
  double w(std::int64_t k, std::int64_t c, std::int64_t r, std::int64_t s) const {
    return operands_.w[((k * spec_.weight.c + c) * spec_.weight.r + r) * spec_.weight.s + s];
  }
  std::int64_t group_of(std::int64_t k) const { return k / (spec_.weight.k / spec_.groups); }
  std::int64_t row(std::int64_t p, std::int64_t r) const {
    return p * spec_.stride.h - spec_.padding.top + r * spec_.dilation.h;
  }
  std::int64_t column(std::int64_t q, std::int64_t s) const {
    return q * spec_.stride.w - spec_.padding.left + s * spec_.dilation.w;
  }
  static bool inside(std::int64_t index, std::int64_t extent) { return index >= 0 && index < extent; }

  static void add(Expected& sum, double product) {
    sum.z += product;
    sum.magnitude += std::fabs(product);
    ++sum.terms;
  }
  static void add(Expected& sum, const ActivationGradient& dz, double factor) {
    add(sum, dz.value * factor);
    sum.dz_error += dz.error * std::fabs(factor);
    if (dz.is_masked) --sum.terms;
  }

  /// y[n,k,p,q].
  Expected output(const TensorShape& at) const {
    const std::int64_t channels = spec_.weight.c, k = at.c, first = group_of(k) * channels;
    Expected sum;
    for (std::int64_t c = 0; c < channels; ++c) {
      for (std::int64_t r = 0; r < spec_.weight.r; ++r) {
        const std::int64_t i = row(at.h, r);
        if (!inside(i, spec_.input.h)) continue;
        for (std::int64_t s = 0; s < spec_.weight.s; ++s) {
          const std::int64_t j = column(at.w, s);
          if (inside(j, spec_.input.w)) add(sum, x(at.n, first + c, i, j) * w(k, c, r, s));
        }
      }
    }
    return sum;
  }

  /// dx[n,c,i,j]: of each k, r, s the p and q, if there are any, from which i and j follow.
  Expected data_gradient(const TensorShape& at) const {
    const std::int64_t group = at.c / spec_.weight.c, c = at.c % spec_.weight.c;
    const std::int64_t per_group = spec_.weight.k / spec_.groups;
    Expected sum;
    for (std::int64_t k = group * per_group; k < (group + 1) * per_group; ++k) {
      for (std::int64_t r = 0; r < spec_.weight.r; ++r) {
        const std::int64_t rows = at.h + spec_.padding.top - r * spec_.dilation.h;  // p * stride
        if (rows % spec_.stride.h != 0 || !inside(rows / spec_.stride.h, y_.h)) continue;
        for (std::int64_t s = 0; s < spec_.weight.s; ++s) {
          const std::int64_t columns = at.w + spec_.padding.left - s * spec_.dilation.w;
          if (columns % spec_.stride.w != 0 || !inside(columns / spec_.stride.w, y_.w)) continue;
          add(sum, dz(at.n, k, rows / spec_.stride.h, columns / spec_.stride.w), w(k, c, r, s));
        }
      }
    }
    return sum;
  }

  /// dw[k,c,r,s]; `at` has them as n, c, h, w.
  Expected weight_gradient(const TensorShape& at) const {
    const std::int64_t k = at.n, channel = group_of(k) * spec_.weight.c + at.c;
    Expected sum;
    for (std::int64_t n = 0; n < y_.n; ++n) {
      for (std::int64_t p = 0; p < y_.h; ++p) {
        const std::int64_t i = row(p, at.h);
        if (!inside(i, spec_.input.h)) continue;
        for (std::int64_t q = 0; q < y_.w; ++q) {
          const std::int64_t j = column(q, at.w);
          if (inside(j, spec_.input.w)) add(sum, dz(n, k, p, q), x(n, channel, i, j));
        }
      }
    }
    return sum;
  }

  /// db[k], which has no epilogue.
  Expected channel_sum(std::int64_t k) const {
    Expected sum;
    for (std::int64_t n = 0; n < y_.n; ++n)
      for (std::int64_t p = 0; p < y_.h; ++p)
        for (std::int64_t q = 0; q < y_.w; ++q) add(sum, dz(n, k, p, q), 1);
    sum.y = sum.z;
    return sum;
  }

  /// With the epilogue. A weight gradient's bias is none of its addends.
  Expected finished(Expected sum, std::int64_t channel, std::int64_t position) const {
    const auto add_addend = [&sum](double value) {
      sum.z += value;
      sum.addends += std::fabs(value);
    };
    if (spec_.epilogue.bias && !has_channel_sums(spec_)) add_addend(operands_.bias[channel]);
    if (spec_.epilogue.residual) add_addend(operands_.residual[position]);
    sum.y = activate(spec_.epilogue, sum.z);
    return sum;
  }

  const ConvSpec& spec_;
  const Operands& operands_;
  TensorShape y_;
  Strides x_strides_, y_strides_;
  std::int64_t result_elements_;
};

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
  const Definition definition(spec, operands);
  std::vector<Expected> results(positions.size());
  const std::int64_t grain = 100'000 / std::max<std::int64_t>(1, reduction_length(spec));
  parallel_for(static_cast<std::int64_t>(positions.size()), grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::size_t at = static_cast<std::size_t>(i);
      results[at] = definition.at(positions[at]);
    }
  });
  return results;
}

std::vector<Expected> reference(const ConvSpec& spec, const Operands& operands) {
  std::vector<std::int64_t> positions(static_cast<std::size_t>(position_count(spec)));
  std::iota(positions.begin(), positions.end(), std::int64_t{0});
  return reference_at(spec, operands, positions);
}

}  // namespace jitconv::check
