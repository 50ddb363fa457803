// dz, dy times the derivative of ConvSpec::dy_activation, by the formulas that are stated there: in double, and how far
// a kernel's may be from it. Shares no code with the generator.
#pragma once

#include "jitconv/spec.h"

namespace jitconv::check {

struct ActivationGradient {
  double value = 0;
  /// No correct kernel's dz is further from `value`: the derivative is evaluated in fp32, and the product rounded to
  /// dtype (docs/accuracy.md).
  double error = 0;
  bool is_masked = false;  ///< zero whatever dy is
};

/// dy itself if the spec has no dy_activation.
ActivationGradient activation_gradient(const ConvSpec& spec, double dy, double saved);

}  // namespace jitconv::check
