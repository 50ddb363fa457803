// From the user's words to a kernel's problem, and what can be said of a problem without a tiling.
#include "codegen/problem.h"

#include "fmt/format.h"
#include "jitconv/error.h"

namespace jitconv::codegen {
namespace {

Arithmetic arithmetic_of(const ConvSpec& spec) {
  switch (spec.dtype) {
    case DataType::f32:
      return spec.math == MathMode::tf32 ? Arithmetic::tf32 : Arithmetic::fp32;
    case DataType::f16:
      return spec.math == MathMode::ieee ? Arithmetic::fp32 : Arithmetic::f16;
    case DataType::bf16:
      return spec.math == MathMode::ieee ? Arithmetic::fp32 : Arithmetic::bf16;
  }
  throw InternalError("unknown data type");
}

/// Refuses what a valid spec may ask for and the kernels do not have.
void require_supported(const ConvSpec& spec) {
  if (spec.operation != Operation::forward) {
    throw SpecError(ErrorCode::unsupported, "operation",
                    fmt::format("operation is {}, must be forward: this version of jitconv has no kernels of gradients",
                                to_string(spec.operation)));
  }
  if (output_type(spec) != spec.dtype) {
    throw SpecError(
        ErrorCode::unsupported, "output_dtype",
        fmt::format("output_dtype is {}, must be same or {}: this version of jitconv has no kernels that store another "
                    "type than dtype",
                    to_string(spec.output_dtype), to_string(spec.dtype)));
  }
}

bool is_dense(const View& view, std::int64_t channels, std::int64_t h, std::int64_t w) {
  return view.first == 0 && view.stride == dense_strides(view.layout(), channels, h, w);
}

}  // namespace

std::string_view to_string(Arithmetic arithmetic) {
  switch (arithmetic) {
    case Arithmetic::fp32:
      return "fp32";
    case Arithmetic::tf32:
      return "tf32";
    case Arithmetic::f16:
      return "f16";
    case Arithmetic::bf16:
      return "bf16";
  }
  throw InternalError("unknown arithmetic");
}

View::Strides dense_strides(Layout layout, std::int64_t channels, std::int64_t h, std::int64_t w) {
  const std::int64_t image = channels * h * w;
  if (layout == Layout::nchw) return {image, h * w, w, 1};
  return {image, 1, w * channels, channels};
}

Problem lower(const ConvSpec& spec) {
  const TensorShape& x = spec.input;
  const TensorShape y = output_shape(spec);
  require_supported(spec);
  const WeightShape& w = spec.weight;
  Problem problem;
  problem.n = x.n;
  problem.groups = spec.groups;
  problem.c = w.c;
  problem.k = w.k / spec.groups;
  problem.rows = {x.h, y.h, w.r, spec.stride.h, spec.dilation.h, spec.padding.top};
  problem.columns = {x.w, y.w, w.s, spec.stride.w, spec.dilation.w, spec.padding.left};
  problem.input = {Tensor::x, spec.dtype, dense_strides(spec.input_layout, x.c, x.h, x.w), 0};
  problem.weight = {Tensor::w, spec.dtype, dense_strides(Layout::nchw, w.c, w.r, w.s), 0};
  problem.output = {Tensor::y, spec.dtype, dense_strides(spec.output_layout, y.c, y.h, y.w), 0};
  problem.arithmetic = arithmetic_of(spec);
  problem.epilogue = spec.epilogue;
  problem.alignment = spec.alignment;
  return problem;
}

std::string_view beyond_dense_forward(const Problem& problem) {
  if (problem.reduction != Reduction::taps) return "the sums run over pixels";
  if (problem.rows.pad < 0 || problem.columns.pad < 0) return "the input is cropped";
  if (!is_dense(problem.input, problem.input_channels(), problem.rows.input, problem.columns.input))
    return "the input is no dense tensor";
  if (!is_dense(problem.weight, problem.c, problem.rows.taps, problem.columns.taps))
    return "the weight is no dense tensor";
  if (!is_dense(problem.output, problem.output_channels(), problem.rows.output, problem.columns.output))
    return "the output is no dense tensor";
  return {};
}

Work work(const Problem& problem) {
  const auto product = [](auto... factors) { return (static_cast<double>(factors) * ...); };
  const double outputs = product(problem.n, problem.output_channels(), problem.rows.output, problem.columns.output);
  const double inputs = product(problem.n, problem.input_channels(), problem.rows.input, problem.columns.input);
  const double weights = product(problem.output_channels(), problem.c, problem.rows.taps, problem.columns.taps);
  const auto bytes = [](double elements, const View& view) {
    return elements * static_cast<double>(view.element_bytes());
  };
  double all = bytes(inputs, problem.input) + bytes(weights, problem.weight) + bytes(outputs, problem.output);
  if (problem.epilogue.bias) all += bytes(static_cast<double>(problem.output_channels()), problem.output);
  if (problem.epilogue.residual) all += bytes(outputs, problem.output);
  return {2 * product(outputs, problem.c, problem.rows.taps, problem.columns.taps), all};
}

}  // namespace jitconv::codegen
