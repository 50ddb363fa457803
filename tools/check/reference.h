// The convolution and its gradients by their definition, in double, on the host: what every result of jitconv is held
// against. It shares no code with the planner or the generator, and takes the definition from the comments at Operation
// and ConvSpec alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "jitconv/spec.h"
#include "tools/check/data.h"
#include "tools/check/positions.h"

namespace jitconv::check {

/// One input tensor in memory order: values held elsewhere, or a generator.
class Operand {
 public:
  Operand() = default;
  Operand(std::span<const float> values) : values_(values.data()) {}
  Operand(const std::vector<float>& values) : values_(values.data()) {}
  Operand(const Fill& fill) : fill_(fill) {}
  double operator[](std::int64_t index) const {
    return static_cast<double>(values_ != nullptr ? values_[index] : fill_(index));
  }

 private:
  const float* values_ = nullptr;
  Fill fill_;
};

/// The inputs of one operation; those that it does not read may be left out.
struct Operands {
  Operand x, w, bias, residual, dy, saved;
  Operands() = default;
  Operands(Operand x_in, Operand w_in, Operand bias_in, Operand residual_in, Operand dy_in = {}, Operand saved_in = {})
      : x(x_in), w(w_in), bias(bias_in), residual(residual_in), dy(dy_in), saved(saved_in) {}
  Operands(const Data& data) : Operands(data.x, data.w, data.bias, data.residual, data.dy, data.saved) {}
};

/// One element of a result and what bounds its rounding errors.
struct Expected {
  double y = 0;          ///< activation(z), not rounded to the output type; also of dx, dw and db
  double z = 0;          ///< sum + bias + residual
  double magnitude = 0;  ///< sum of the products' magnitudes; of db, of those of dy
  double addends = 0;    ///< |bias| + |residual|
  double dz_error = 0;   ///< what errors of dz may bring into the sum: see ActivationGradient::error
  /// Products whose factors lie inside their tensors, without those that an activation's derivative makes zero.
  std::int64_t terms = 0;
};

/// The elements at `positions`. Multi-threaded.
std::vector<Expected> reference_at(const ConvSpec& spec, const Operands& operands,
                                   std::span<const std::int64_t> positions);

/// All of them: 48 bytes each, so for small shapes.
std::vector<Expected> reference(const ConvSpec& spec, const Operands& operands);

/// The epilogue's activation, in double.
double activate(const Epilogue& epilogue, double x);

}  // namespace jitconv::check
