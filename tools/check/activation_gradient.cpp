// See activation_gradient.h; docs/accuracy.md derives the constants.
#include "tools/check/activation_gradient.h"

#include <algorithm>
#include <cmath>

#include "tools/check/number.h"

namespace jitconv::check {
namespace {

const double kPi = std::acos(-1.0);

/// The value of a function's derivative, and the error of evaluating it in fp32.
struct Derivative {
  double value, error;
};

double logistic(double z) { return 1 / (1 + std::exp(-z)); }

Derivative gelu_erf(double z) {
  const double cdf = std::erfc(-z / std::sqrt(2.0)) / 2, density = std::exp(-z * z / 2) / std::sqrt(2 * kPi);
  return {cdf + z * density, 8 * unit_roundoff(DataType::f32) * (1 + std::fabs(z))};
}

Derivative gelu_tanh(double z) {
  const double beta = std::sqrt(2 / kPi), kappa = 0.044715;
  const double t = std::tanh(beta * (z + kappa * z * z * z)), inner = beta * (1 + 3 * kappa * z * z);
  return {(1 + t) / 2 + z / 2 * (1 - t * t) * inner, 8 * unit_roundoff(DataType::f32) * (1 + std::fabs(z) * inner)};
}

Derivative silu(double z) {
  const double s = logistic(z);
  return {s * (1 + z * (1 - s)), 8 * unit_roundoff(DataType::f32) * (1 + std::fabs(z))};
}

/// Derivatives of the smooth activations, and of the others where they are neither flat nor the identity.
Derivative derivative(Activation activation, const Epilogue& epilogue, double saved) {
  switch (activation) {
    case Activation::none:
    case Activation::relu:
    case Activation::clamp:
      return {1, 0};
    case Activation::leaky_relu:
      return {static_cast<double>(epilogue.slope), 0};
    case Activation::gelu_erf:
      return gelu_erf(saved);
    case Activation::gelu_tanh:
      return gelu_tanh(saved);
    case Activation::silu:
      return silu(saved);
    case Activation::sigmoid:
      return {logistic(saved) * (1 - logistic(saved)), 8 * unit_roundoff(DataType::f32)};
    case Activation::tanh:
      return {1 - std::tanh(saved) * std::tanh(saved), 8 * unit_roundoff(DataType::f32)};
    case Activation::hardswish:
      return {saved / 3 + 0.5, 8 * unit_roundoff(DataType::f32)};
  }
  return {std::nan(""), 0};
}

bool is_flat(const ConvSpec& spec, double saved) {
  const double least = static_cast<double>(spec.epilogue.clamp_min),
               most = static_cast<double>(spec.epilogue.clamp_max);
  switch (spec.dy_activation) {
    case Activation::relu:
      return saved <= 0;
    case Activation::hardswish:
      return saved <= -3;
    case Activation::clamp:
      return saved <= least || saved >= most;
    default:
      return false;
  }
}

/// Where it is not flat. The order of the comparisons is that of NaN's way.
bool is_identity(const ConvSpec& spec, double saved) {
  switch (spec.dy_activation) {
    case Activation::none:
    case Activation::relu:
    case Activation::clamp:
      return true;
    case Activation::leaky_relu:
      return saved > 0;
    case Activation::hardswish:
      return !(saved < 3);
    default:
      return false;
  }
}

}  // namespace

ActivationGradient activation_gradient(const ConvSpec& spec, double dy, double saved) {
  if (is_flat(spec, saved)) return {.is_masked = true};
  if (is_identity(spec, saved)) return {.value = dy};
  const Derivative slope = derivative(spec.dy_activation, spec.epilogue, saved);
  const double dz = dy * slope.value;
  double error = std::fabs(dy) * slope.error;
  error += unit_roundoff(DataType::f32) * (std::fabs(dz) + error) + subnormal_roundoff(DataType::f32);
  if (spec.dtype != DataType::f32)
    error += std::max(unit_roundoff(spec.dtype) * (std::fabs(dz) + error), subnormal_roundoff(spec.dtype));
  return {.value = dz, .error = error};
}

}  // namespace jitconv::check
