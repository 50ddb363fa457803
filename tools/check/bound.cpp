// See bound.h; docs/accuracy.md derives every constant below.
#include "tools/check/bound.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "fmt/format.h"
#include "tools/check/number.h"

namespace jitconv::check {
namespace {

const double kTf32Roundoff = std::ldexp(1.0, -11);

/// Tensor cores align the addends of a step to the largest and cut off what falls below its last place: per addition up
/// to four times what rounding to nearest loses.
const double kTensorCoreRoundoff = std::ldexp(1.0, -22);

/// Most products of a weight gradient in one accumulator of a tensor core, and in one of an fp32 loop.
const double kMostTruncated = std::ldexp(1.0, 14), kMostSummed = std::ldexp(1.0, 18);

/// Exact partial sums end here.
const double kExactLimit = std::ldexp(1.0, 24);

/// The mode may use tensor cores without promising the accuracy of an fp32 loop. That of numbers that are small beside
/// the largest, which fp16x3 does not promise, is left out: what is checked has none.
bool uses_tensor_cores(const ConvSpec& spec) {
  return spec.math == MathMode::tf32 || (spec.math != MathMode::ieee && spec.dtype != DataType::f32);
}

/// Higham's gamma: n roundings of relative size u.
double gamma(double n, double u) {
  const double product = n * u;
  return product < 1 ? product / (1 - product) : std::numeric_limits<double>::infinity();
}

/// Roundings on the way of one product into the sum with bias and residual: its own additions and two more.
double rounding_count(const ConvSpec& spec) { return static_cast<double>(reduction_length(spec)) + 2; }

/// What `count` additions lose, relative to the sum of the addends' magnitudes. Kernels of weight gradients promise
/// that no sum is longer than so many products before it is added to another.
double accumulation_error(const ConvSpec& spec, double count) {
  const bool truncates = uses_tensor_cores(spec);
  if (spec.operation != Operation::weight_gradient)
    return gamma(count, truncates ? kTensorCoreRoundoff : unit_roundoff(DataType::f32));
  return gamma(std::min(count, kMostSummed), unit_roundoff(DataType::f32)) +
         (truncates ? gamma(std::min(count, kMostTruncated), kTensorCoreRoundoff) : 0);
}

/// Error of z before the activation, if `count` roundings hit it.
double sum_error(const ConvSpec& spec, const Expected& expected, double count) {
  const double accumulate = accumulation_error(spec, count);
  const bool rounds_operands = spec.math == MathMode::tf32 && spec.dtype == DataType::f32;
  const double operands = rounds_operands ? kTf32Roundoff * (2 + kTf32Roundoff) : 0;
  // Rounded operands enter the additions, hence the product of both; the last term is fp32's underflow.
  return (accumulate + operands + accumulate * operands) * (expected.magnitude + expected.dz_error) +
         expected.dz_error + accumulate * expected.addends + rounding_count(spec) * subnormal_roundoff(DataType::f32);
}

/// Largest slope of the activation: what it makes of an error of z.
double slope_of(const Epilogue& epilogue) {
  switch (epilogue.activation) {
    case Activation::leaky_relu:
      return std::max(1.0, std::fabs(static_cast<double>(epilogue.slope)));
    case Activation::gelu_erf:
    case Activation::gelu_tanh:
      return 1.13;
    case Activation::silu:
      return 1.1;
    case Activation::sigmoid:
      return 0.25;
    case Activation::hardswish:
      return 1.5;
    default:
      return 1;
  }
}

/// Error of evaluating the activation in fp32 at the z that was reached, `z_error` away from the right one.
double activation_error(const Epilogue& epilogue, const Expected& expected, double z_error) {
  const double z = std::fabs(expected.z) + z_error;
  switch (epilogue.activation) {
    case Activation::none:
    case Activation::relu:
    case Activation::clamp:
      return 0;
    case Activation::leaky_relu:
      return unit_roundoff(DataType::f32) * slope_of(epilogue) * z;
    case Activation::gelu_erf:
    case Activation::gelu_tanh:
    case Activation::silu:
    case Activation::hardswish:
      return 8 * unit_roundoff(DataType::f32) * z;
    case Activation::sigmoid:
    case Activation::tanh:
      return 8 * unit_roundoff(DataType::f32);
  }
  return 0;
}

double output_error(const ConvSpec& spec, const Expected& expected, double count) {
  const double z_error = sum_error(spec, expected, count);
  double error = slope_of(spec.epilogue) * z_error + activation_error(spec.epilogue, expected, z_error);
  if (const DataType type = output_type(spec); type != DataType::f32) {
    // Where rounding ends: the normal range, or the even spacing of subnormals.
    error += std::max(unit_roundoff(type) * (std::fabs(expected.y) + error), subnormal_roundoff(type));
  }
  return error;
}

bool is_value_of(DataType type, float value) {
  const double exact = static_cast<double>(value);
  return round_to(type, exact) == exact;
}

/// A finite right answer near the type's largest value may round to infinity when its error goes outward.
bool overflows_within(DataType type, double value, double bound) {
  return std::isinf(round_to(type, value + std::copysign(bound, value)));
}

struct Difference {
  double error = 0, ratio = 0;
  bool right = true;
};

Difference difference(const ConvSpec& spec, const Expected& expected, double actual, bool exact) {
  const double right_answer = round_to(output_type(spec), expected.y);
  if (std::isnan(expected.y) || std::isnan(actual)) {
    const bool both = std::isnan(expected.y) && std::isnan(actual);
    const double error = both ? 0 : std::numeric_limits<double>::infinity();
    return {error, error, both};
  }
  if (actual == right_answer) {
    // Equal infinities have no difference, and neither has what could not be nearer.
    const double error = std::isinf(actual) ? 0 : std::fabs(actual - expected.y);
    const double bound = error_bound(spec, expected);
    return {error, bound > 0 ? error / bound : 0, true};
  }
  const double error = std::fabs(actual - expected.y), bound = error_bound(spec, expected);
  const bool infinite = std::isinf(actual) && std::signbit(actual) == std::signbit(expected.y);
  if (!exact && infinite && overflows_within(output_type(spec), expected.y, bound)) return {0, 0, true};
  // 0 / 0 cannot occur: an error of zero is equality, above.
  const double ratio = bound > 0 ? error / bound : std::numeric_limits<double>::infinity();
  return {error, ratio, !exact && ratio <= 1};
}

}  // namespace

double error_bound(const ConvSpec& spec, const Expected& expected) {
  return output_error(spec, expected, rounding_count(spec));
}

double likely_error(const ConvSpec& spec, const Expected& expected) {
  // Higham & Mary (SISC 41(5), 2019): independent errors stay below lambda * sqrt(n) * u with a probability that
  // lambda = 4 makes near enough to one for a report.
  return output_error(spec, expected, std::min(rounding_count(spec), 4 * std::sqrt(rounding_count(spec))));
}

bool has_exact_epilogue(const ConvSpec& spec) {
  const Epilogue& epilogue = spec.epilogue;
  const DataType type = output_type(spec);
  if (!has_exact_dz(spec)) return false;
  switch (epilogue.activation) {
    case Activation::none:
    case Activation::relu:
      return true;
    case Activation::leaky_relu:
      // An fp32 product is rounded once, which for f32 is the only rounding; a 16-bit output would be rounded twice.
      return type == DataType::f32 || is_power_of_two(epilogue.slope);
    case Activation::clamp:
      return is_value_of(type, epilogue.clamp_min) && is_value_of(type, epilogue.clamp_max);
    default:
      return false;
  }
}

Comparison compare(const ConvSpec& spec, DataKind kind, std::span<const std::int64_t> positions,
                   std::span<const Expected> expected, std::span<const float> actual) {
  Comparison result;
  result.exact = kind == DataKind::exact && has_exact_epilogue(spec);
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const Expected& want = expected[i];
    const double got = static_cast<double>(actual[i]);
    if (result.exact && want.magnitude + want.addends > kExactLimit) {
      throw std::invalid_argument("exact data with sums beyond 2^24: use make_data()");
    }
    const Difference delta = difference(spec, want, got, result.exact);
    ++result.compared;
    if (want.terms > 0) {
      ++result.with_terms;
      if (want.z == 0) ++result.trivial;
    }
    result.worst_error = std::max(result.worst_error, delta.error);
    result.worst_ratio = std::max(result.worst_ratio, delta.ratio);
    if (delta.right) {
      if (delta.error > likely_error(spec, want)) ++result.unlikely;
      continue;
    }
    if (result.wrong++ > 0) continue;
    result.first_wrong =
        fmt::format("{} = {:.9g}, expected {:.9g} (error {:.3g}, bound {:.3g})", element_name(spec, positions[i]), got,
                    round_to(output_type(spec), want.y), delta.error, result.exact ? 0 : error_bound(spec, want));
  }
  return result;
}

std::string Comparison::text() const {
  std::string line =
      fmt::format("{} of {} outputs wrong ({}), worst error {:.3g}, {:.3g} of the bound", wrong, compared,
                  exact ? "compared for equality" : "compared with the bound", worst_error, worst_ratio);
  if (!first_wrong.empty()) line += "; first: " + first_wrong;
  if (vacuous()) line += fmt::format("; shows nothing: {} of {} sums are zero", trivial, with_terms);
  return line;
}

}  // namespace jitconv::check
