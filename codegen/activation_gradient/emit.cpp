// Prints templates/activation_gradient/kernel.cu.in.
#include <cmath>

#include "codegen/activation_gradient/pass.h"
#include "fmt/format.h"
#include "jitconv/error.h"

namespace jitconv::codegen {
namespace {

constexpr double kPi = 3.14159265358979323846;

std::string literal(double value) { return float_literal(static_cast<float>(value)); }

/// The derivative of gelu_tanh, of whose tanh the argument is kBeta * (z + kKappa * z^3).
std::string gelu_tanh_lines() {
  const double beta = std::sqrt(2 / kPi), kappa = 0.044715;
  return fmt::format(
      "const float t = tanhf({0} * fmaf({1} * z * z, z, z));\n"
      "const float inner = {0} * fmaf({2} * z, z, 1.0f);  // the derivative of tanh's argument\n"
      "return dy * (0.5f * (1.0f + t) + 0.5f * z * (1.0f - t * t) * inner);\n",
      literal(beta), literal(kappa), literal(3 * kappa));
}

/// The body of activation_backward(dy, y) or (dy, z): PyTorch's formulas. Comparisons are written so that NaN does what
/// it does there.
std::string backward_lines(Activation activation, const Epilogue& epilogue) {
  switch (activation) {
    case Activation::none:
      break;
    case Activation::relu:
      return "return y <= 0.0f ? 0.0f : dy;\n";
    case Activation::leaky_relu:
      return fmt::format("return y > 0.0f ? dy : dy * {};\n", float_literal(epilogue.slope));
    case Activation::gelu_erf:
      return fmt::format(
          "const float cdf = 0.5f * (1.0f + erff(z * {}));\n"
          "const float pdf = expf(-0.5f * z * z) * {};\n"
          "return dy * (cdf + z * pdf);\n",
          literal(std::sqrt(0.5)), literal(1 / std::sqrt(2 * kPi)));
    case Activation::gelu_tanh:
      return gelu_tanh_lines();
    case Activation::silu:
      return "const float s = 1.0f / (1.0f + expf(-z));\nreturn dy * (s * (1.0f + z * (1.0f - s)));\n";
    case Activation::sigmoid:
      return "const float s = 1.0f / (1.0f + expf(-z));\nreturn dy * (s * (1.0f - s));\n";
    case Activation::tanh:
      return "const float t = tanhf(z);\nreturn dy * (1.0f - t * t);\n";
    case Activation::hardswish:
      return fmt::format("return z <= -3.0f ? 0.0f : z < 3.0f ? dy * (z * {} + 0.5f) : dy;\n", literal(1.0 / 3.0));
    case Activation::clamp:
      return fmt::format("return y <= {} || y >= {} ? 0.0f : dy;\n", float_literal(epilogue.clamp_min),
                         float_literal(epilogue.clamp_max));
  }
  throw InternalError("an activation without a derivative");
}

std::string backward_function(const Problem& problem) {
  const Activation activation = problem.dy_activation;
  return fmt::format(
      "// dy times the derivative of {}.\n"
      "__device__ __forceinline__ float activation_backward(float dy, float {}) {{\n{}}}\n",
      to_string(activation), derives_from_result(activation) ? "y" : "z",
      indented(backward_lines(activation, problem.epilogue)));
}

std::string constants(const Problem& problem, const ActivationGradientTiling& tiling) {
  Constants c;
  c.group("Elements of dy, and of a thread");
  c.add("kThreads", ActivationGradientTiling::kThreads).add("kDyElements", problem.dy_elements());
  c.add("kVector", tiling.vector);
  return c.text();
}

}  // namespace

KernelText activation_gradient::emit(const KernelPlan& kernel, std::string_view name) {
  const auto& tiling = std::get<ActivationGradientTiling>(kernel.tiling);
  const Problem& problem = kernel.problem;
  KernelText text;
  text.arguments = {{Tensor::dy, "const Element* __restrict__", "dy"},
                    {Tensor::saved, "const Element* __restrict__", "saved"},
                    {tiling.dz, "Element* __restrict__", "dz"}};
  text.files = {{element_header(problem.dy().type)}, {"device/vector.cuh"}};
  text.text = fill_template(embedded_text("activation_gradient/kernel.cu.in"),
                            {{"constants", constants(problem, tiling)},
                             {"activation_backward", backward_function(problem)},
                             {"kernel", std::string(name)},
                             {"parameters", parameter_list(text.arguments)},
                             {"index", kernel.wide_index ? "long long" : "int"}});
  return text;
}

}  // namespace jitconv::codegen
