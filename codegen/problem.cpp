// From the user's words to a kernel's problem, and what can be said of a problem without a tiling.
#include "codegen/problem.h"

#include <utility>

#include "fmt/format.h"
#include "jitconv/error.h"

namespace jitconv::codegen {
namespace {

Arithmetic arithmetic_of(const ConvSpec& spec) {
  switch (spec.dtype) {
    case DataType::f32:
      switch (spec.math) {
        case MathMode::ieee:
          return Arithmetic::fp32;
        case MathMode::fp32:
          return Arithmetic::tf32x3;
        case MathMode::tf32:
          return Arithmetic::tf32;
        case MathMode::fp16x3:
          return Arithmetic::f16x3;
      }
      throw InternalError("unknown math mode");
    case DataType::f16:
      return spec.math == MathMode::ieee ? Arithmetic::fp32 : Arithmetic::f16;
    case DataType::bf16:
      return spec.math == MathMode::ieee ? Arithmetic::fp32 : Arithmetic::bf16;
  }
  throw InternalError("unknown data type");
}

/// Refuses what a valid spec may ask for and the kernels do not have.
void require_supported(const ConvSpec& spec) {
  const bool is_gradient_of_weights = spec.operation == Operation::weight_gradient;
  if (output_type(spec) == spec.dtype || (is_gradient_of_weights && output_type(spec) == DataType::f32)) return;
  throw SpecError(
      ErrorCode::unsupported, "output_dtype",
      fmt::format("output_dtype is {}, must be same{} or {}: this version of jitconv has no kernels that store another "
                  "type",
                  to_string(spec.output_dtype), is_gradient_of_weights ? ", f32" : "", to_string(spec.dtype)));
}

/// The axis of the convolution that computes the gradient of x along an axis of the forward convolution:
/// x[i] meets dy[p] where i = p*stride - pad + t*dilation. With taps from last to first, p*stride = i + pad -
/// (taps-1)*dilation + t'*dilation.
Axis gradient_axis(const Axis& forward) {
  Axis axis = forward;
  std::swap(axis.input, axis.output);
  axis.stride = 1;
  axis.pad = forward.reach() - forward.pad;
  axis.upsampling = forward.stride;
  return axis;
}

/// The same weights with channels exchanged within each group, and taps from last to first.
View gradient_weight(const View& forward, const Axis& rows, const Axis& columns) {
  View view = forward;
  std::swap(view.stride.n, view.stride.c);
  view.first = (rows.taps - 1) * forward.stride.h + (columns.taps - 1) * forward.stride.w;
  view.stride.h = -forward.stride.h;
  view.stride.w = -forward.stride.w;
  return view;
}

/// Makes one row of all pixels of an image, if they follow each other in both tensors, and one row of the pixels of all
/// images, if those do, too. Only for a weight gradient with a 1x1 filter: its sums do not depend on the row that a
/// pixel is in. A stride prevents that, except in NHWC tensors: there it first becomes a part of the strides of x.
void join_pixels(Problem& problem) {
  Axis &rows = problem.rows, &columns = problem.columns;
  if (!rows.is_pointwise() || !columns.is_pointwise()) return;
  View::Strides &x = problem.input.stride, &dy = problem.output.stride;
  if (rows.stride != 1 || columns.stride != 1) {
    if (problem.input.layout() != Layout::nhwc) return;
    x.h *= rows.stride;
    x.w *= columns.stride;
    rows.stride = columns.stride = 1;
  }
  rows.input = rows.output;
  columns.input = columns.output;
  if (x.h != columns.output * x.w || dy.h != columns.output * dy.w) return;
  const auto join = [&columns](std::int64_t& extent) {
    columns.input = columns.output = extent * columns.output;
    extent = 1;
  };
  join(rows.output);
  rows.input = 1;
  if (x.n == columns.output * x.w && dy.n == columns.output * dy.w && problem.n > 0) join(problem.n);
  x.h = columns.output * x.w;
  dy.h = columns.output * dy.w;
}

bool is_dense(const View& view, std::int64_t channels, std::int64_t h, std::int64_t w) {
  return view.first == 0 && view.stride == dense_strides(view.layout(), channels, h, w);
}

}  // namespace

std::string_view to_string(Arithmetic arithmetic) {
  switch (arithmetic) {
    case Arithmetic::fp32:
      return "fp32";
    case Arithmetic::tf32x3:
      return "tf32x3";
    case Arithmetic::tf32:
      return "tf32";
    case Arithmetic::f16x3:
      return "f16x3";
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

View dense_weight(Tensor tensor, DataType type, std::int64_t k, std::int64_t c, std::int64_t r, std::int64_t s) {
  return {tensor, type, dense_strides(Layout::nchw, c, r, s), 0, k * c * r * s};
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
  problem.input = {Tensor::x, spec.dtype, dense_strides(spec.input_layout, x.c, x.h, x.w)};
  problem.weight = dense_weight(Tensor::w, spec.dtype, problem.k, w.c, w.r, w.s);
  problem.output = {Tensor::y, spec.dtype, dense_strides(spec.output_layout, y.c, y.h, y.w)};
  problem.arithmetic = arithmetic_of(spec);
  problem.epilogue = spec.epilogue;
  problem.dy_activation = spec.dy_activation;
  problem.alignment = spec.alignment;
  if (spec.operation == Operation::data_gradient) {
    problem.weight = gradient_weight(problem.weight, problem.rows, problem.columns);
    problem.rows = gradient_axis(problem.rows);
    problem.columns = gradient_axis(problem.columns);
    std::swap(problem.c, problem.k);
    std::swap(problem.input, problem.output);
    problem.input.tensor = Tensor::dy;
    problem.output.tensor = Tensor::dx;
  } else if (spec.operation == Operation::weight_gradient) {
    problem.reduction = Reduction::pixels;
    problem.output.tensor = Tensor::dy;
    problem.weight.tensor = Tensor::dw;
    problem.weight.type = output_type(spec);
    join_pixels(problem);
  }
  return problem;
}

Problem join_groups(const Problem& asked, std::int64_t count) {
  Problem problem = asked;
  problem.joined_groups *= count;
  problem.groups /= count;
  problem.c *= count;
  problem.k *= count;
  if (count == 1 || asked.reduction == Reduction::pixels) return problem;
  problem.asked_weight = asked.asked_weight.value_or(asked.weight);
  problem.weight = dense_weight(asked.weight.tensor, asked.weight.type, problem.k, problem.c, problem.rows.taps,
                                problem.columns.taps);
  return problem;
}

std::string_view beyond_dense_input_and_output(const Problem& problem) {
  if (problem.is_upsampled()) return "the input is upsampled by a stride";
  return beyond_dense_or_upsampled(problem);
}

std::string_view beyond_dense_or_upsampled(const Problem& problem) {
  if (problem.reduction != Reduction::taps) return "the sums run over pixels";
  if (problem.is_cropped() && !problem.is_upsampled()) return "the input is cropped";
  if (!is_dense(problem.input, problem.input_channels(), problem.rows.input, problem.columns.input))
    return "the input is no dense tensor";
  if (!is_dense(problem.output, problem.output_channels(), problem.rows.output, problem.columns.output))
    return "the output is no dense tensor";
  return {};
}

std::string_view beyond_dense_forward(const Problem& problem) {
  if (const std::string_view rule = beyond_dense_input_and_output(problem); !rule.empty()) return rule;
  if (!is_dense(problem.weight, problem.c, problem.rows.taps, problem.columns.taps) ||
      problem.weight.group != problem.k * problem.c * problem.taps())
    return "the weight is no dense tensor";
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
  double all = bytes(inputs, problem.input) + bytes(weights, problem.weight) +
               bytes(outputs * static_cast<double>(problem.phases.pixels_of_output()), problem.output);
  if (problem.epilogue.bias) all += bytes(static_cast<double>(problem.output_channels()), problem.result());
  if (problem.epilogue.residual)
    all += bytes(problem.reduction == Reduction::taps ? outputs : weights, problem.result());
  // In an upsampled input, a tap meets a pixel only for one in upsampling.rows * upsampling.columns outputs.
  const double upsampling = product(problem.rows.upsampling, problem.columns.upsampling);
  const double multiplied =
      upsampling == 1 ? outputs : product(problem.n, problem.output_channels(), problem.input_plane());
  return {2 * product(multiplied, problem.c, problem.rows.taps, problem.columns.taps), all};
}

}  // namespace jitconv::codegen
