// The convolution by its definition, in double, on the host: what every result of jitconv is held against. It shares no
// code with the planner or the generator, and takes the definition from the comment at ConvSpec alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "jitconv/spec.h"
#include "tools/check/data.h"

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

/// The inputs of one convolution; bias and residual are read only if the spec has them.
struct Operands {
  Operand x, w, bias, residual;
  Operands() = default;
  Operands(Operand x_in, Operand w_in, Operand bias_in, Operand residual_in)
      : x(x_in), w(w_in), bias(bias_in), residual(residual_in) {}
  Operands(const Data& data) : Operands(data.x, data.w, data.bias, data.residual) {}
};

/// One output and what bounds its rounding errors.
struct Expected {
  double y = 0;            ///< activation(z), not rounded to the output type
  double z = 0;            ///< sum + bias + residual
  double magnitude = 0;    ///< sum of |x||w|
  double addends = 0;      ///< |bias| + |residual|
  std::int64_t terms = 0;  ///< products whose x lies inside the input
};

/// The outputs at `positions`, which are indices into y's memory. Multi-threaded.
std::vector<Expected> reference_at(const ConvSpec& spec, const Operands& operands,
                                   std::span<const std::int64_t> positions);

/// All outputs in y's memory order: 40 bytes each, so for small shapes.
std::vector<Expected> reference(const ConvSpec& spec, const Operands& operands);

/// About `count` distinct positions in ascending order, or all if there are no more than that: the corners, edges and
/// centre of the first and last plane, and random ones.
std::vector<std::int64_t> sample_positions(const ConvSpec& spec, std::int64_t count, std::uint64_t seed);

/// Where a position of y's memory is: n, k (as c), p, q.
TensorShape coordinates(const ConvSpec& spec, std::int64_t position);

/// The epilogue's activation, in double.
double activate(const Epilogue& epilogue, double x);

}  // namespace jitconv::check
