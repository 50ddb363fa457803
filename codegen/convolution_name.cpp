// See convolution_name.h.
#include "codegen/convolution_name.h"

#include <cstdint>
#include <string_view>

#include "fmt/format.h"
#include "jitconv/error.h"

namespace jitconv::codegen {
namespace {

/// cuDNN's and CUTLASS's words.
std::string_view operation_name(Operation operation) {
  switch (operation) {
    case Operation::forward:
      return "fprop";
    case Operation::data_gradient:
      return "dgrad";
    case Operation::weight_gradient:
      return "wgrad";
  }
  throw InternalError("unknown operation");
}

/// The type, or for fp32 tensors the math mode, which 16-bit ones do not have; and the result's type if it is another.
std::string arithmetic_name(const ConvSpec& spec) {
  std::string name(spec.dtype == DataType::f32 ? to_string(spec.math) : to_string(spec.dtype));
  if (spec.output_dtype != OutputType::same) name += fmt::format("_{}", to_string(spec.output_dtype));
  return name;
}

std::string layout_name(const ConvSpec& spec) {
  std::string name(to_string(spec.input_layout));
  if (spec.output_layout != spec.input_layout) name += fmt::format("_{}", to_string(spec.output_layout));
  return name;
}

std::string size_name(const Size2& size) { return fmt::format("{}x{}", size.h, size.w); }

/// Whether as much padding behind an axis as before it gives as many outputs. canonical() has taken away what no tap
/// meets, so equal numbers are too strict.
bool is_symmetric(std::int64_t input, std::int64_t taps, std::int64_t stride, std::int64_t dilation,
                  std::int64_t before, std::int64_t after) {
  const std::int64_t rest = input + before - (taps - 1) * dilation - 1;
  return (rest + before) / stride == (rest + after) / stride;
}

/// "pad1x2", or "pad_t0b1l0r1" for other padding on the top than on the bottom, or on the left than on the right.
std::string padding_name(const ConvSpec& spec) {
  const Padding& pad = spec.padding;
  const bool rows = is_symmetric(spec.input.h, spec.weight.r, spec.stride.h, spec.dilation.h, pad.top, pad.bottom);
  const bool columns = is_symmetric(spec.input.w, spec.weight.s, spec.stride.w, spec.dilation.w, pad.left, pad.right);
  if (rows && columns) return fmt::format("pad{}x{}", pad.top, pad.left);
  return fmt::format("pad_t{}b{}l{}r{}", pad.top, pad.bottom, pad.left, pad.right);
}

}  // namespace

std::string convolution_name(const ConvSpec& spec) {
  std::string name = fmt::format("{}_{}_{}_n{}c{}h{}w{}_k{}_{}x{}", operation_name(spec.operation),
                                 arithmetic_name(spec), layout_name(spec), spec.input.n, spec.input.c, spec.input.h,
                                 spec.input.w, spec.weight.k, spec.weight.r, spec.weight.s);
  if (spec.padding != Padding()) name += fmt::format("_{}", padding_name(spec));
  if (spec.stride != Size2(1)) name += fmt::format("_s{}", size_name(spec.stride));
  if (spec.dilation != Size2(1)) name += fmt::format("_d{}", size_name(spec.dilation));
  if (spec.groups != 1) name += fmt::format("_g{}", spec.groups);
  if (spec.epilogue.bias) name += "_bias";
  if (spec.epilogue.residual) name += "_residual";
  if (spec.epilogue.activation != Activation::none) name += fmt::format("_{}", to_string(spec.epilogue.activation));
  if (spec.dy_activation != Activation::none) name += fmt::format("_dy_{}", to_string(spec.dy_activation));
  return name;
}

}  // namespace jitconv::codegen
