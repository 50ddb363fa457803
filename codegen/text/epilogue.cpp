// The text of an epilogue, see epilogue.h.
#include "codegen/text/epilogue.h"

#include <cmath>

#include "codegen/text/emitter.h"
#include "fmt/format.h"
#include "jitconv/error.h"

namespace jitconv::codegen {
namespace {

/// The expression activate(x) returns. Comparisons are written so that NaN passes through.
std::string activation_expression(const Epilogue& epilogue) {
  switch (epilogue.activation) {
    case Activation::none:
      return {};
    case Activation::relu:
      return "x < 0.0f ? 0.0f : x";
    case Activation::leaky_relu:
      return fmt::format("x < 0.0f ? x * {} : x", float_literal(epilogue.slope));
    case Activation::gelu_erf:
      return fmt::format("0.5f * x * (1.0f + erff(x * {}))", float_literal(static_cast<float>(std::sqrt(0.5))));
    case Activation::gelu_tanh:
      return fmt::format("0.5f * x * (1.0f + tanhf({} * fmaf({} * x * x, x, x)))",
                         float_literal(static_cast<float>(std::sqrt(2.0 / 3.14159265358979323846))),
                         float_literal(0.044715f));
    case Activation::silu:
      return "x / (1.0f + expf(-x))";
    case Activation::sigmoid:
      return "1.0f / (1.0f + expf(-x))";
    case Activation::tanh:
      return "tanhf(x)";
    case Activation::hardswish:
      return fmt::format("x * (x < -3.0f ? 0.0f : x > 3.0f ? 1.0f : (x + 3.0f) * {})", float_literal(1.0f / 6.0f));
    case Activation::clamp:
      return fmt::format("x < {0} ? {0} : x > {1} ? {1} : x", float_literal(epilogue.clamp_min),
                         float_literal(epilogue.clamp_max));
  }
  throw InternalError("unknown activation");
}

}  // namespace

std::string activation_function(const Epilogue& epilogue, Relu relu) {
  if (epilogue.activation == Activation::none) return {};
  if (epilogue.activation == Activation::relu && relu == Relu::instruction)
    return "// Activation: relu.\n__device__ __forceinline__ float activate(float x) { return max_nan(x, 0.0f); }\n";
  return Lines()
      .add(fmt::format("// Activation: {}.", to_string(epilogue.activation)))
      .add("__device__ __forceinline__ float activate(float x) {")
      .add(fmt::format("  return {};", activation_expression(epilogue)))
      .add("}")
      .text();
}

std::string channel_values(const Epilogue& epilogue, std::string_view channel) {
  return epilogue.bias ? fmt::format("const float channel_bias = to_float(bias[{}]);\n", channel) : "";
}

std::string residual_at(std::string_view offset) { return fmt::format("to_float(residual[{}])", offset); }

std::string epilogue_lines(const Epilogue& epilogue, const EpilogueTerms& terms) {
  Lines lines;
  const auto add = [&](const std::string& condition, const std::string& term) {
    lines.add(
        fmt::format("{}{} += {};", condition.empty() ? "" : fmt::format("if ({}) ", condition), terms.value, term));
  };
  if (epilogue.bias) add(terms.bias_condition, terms.bias);
  if (epilogue.residual) add(terms.residual_condition, terms.residual);
  if (epilogue.activation != Activation::none) lines.add(fmt::format("{0} = activate({0});", terms.value));
  return lines.text();
}

StagedEpilogue staged_epilogue(const Epilogue& epilogue, bool sums_are_whole) {
  StagedEpilogue parts;
  parts.before.bias = epilogue.bias;
  parts.after = epilogue;
  parts.after.bias = false;
  if (sums_are_whole && !epilogue.residual) std::swap(parts.before.activation, parts.after.activation);
  return parts;
}

}  // namespace jitconv::codegen
