// Prints the plans of three operations as Python values, with torch_extension.py.in behind them. Sources are those that
// jitconv itself compiles, to the byte.
#include "tools/torch_extension.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "codegen/activation_gradient/pass.h"
#include "codegen/plan.h"
#include "codegen/source.h"
#include "jitconv/error.h"

namespace jitconv::tools {
namespace {

using codegen::Argument;
using codegen::KernelEntry;
using codegen::KernelSource;
using codegen::Tensor;

struct Part {
  codegen::ConvPlan plan;
  KernelSource source;
};

/// The three operations. An activation whose derivative needs what it was applied to is left to PyTorch.
std::vector<Part> parts(const ConvSpec& spec, const Target& target) {
  std::vector<Part> result;
  const Activation activation = spec.epilogue.activation;
  const Activation fused = codegen::derives_from_result(activation) ? activation : Activation::none;
  for (const Operation operation : {Operation::forward, Operation::data_gradient, Operation::weight_gradient}) {
    ConvSpec one = spec;
    one.operation = operation;
    one.epilogue.activation = operation == Operation::forward ? fused : Activation::none;
    one.epilogue.bias = spec.epilogue.bias && operation != Operation::data_gradient;
    one.dy_activation = operation == Operation::forward ? Activation::none : fused;
    codegen::ConvPlan plan = codegen::make_plan(one, target);
    KernelSource source = codegen::generate(plan);
    result.push_back({std::move(plan), std::move(source)});
  }
  return result;
}

std::string_view tensor_name(Tensor tensor) {
  constexpr std::string_view kNames[] = {"x", "w", "bias", "residual", "y", "dy", "dx", "dw", "db", "saved"};
  return kNames[static_cast<std::size_t>(tensor)];
}

std::string quoted_tensor(Tensor tensor) {
  if (!codegen::is_scratch(tensor)) return fmt::format("\"{}\"", tensor_name(tensor));
  return fmt::format("\"scratch{}\"", static_cast<int>(tensor) - static_cast<int>(Tensor::scratch));
}

/// A pointer's tensor by name, or a tensor map as a dictionary.
std::string python_argument(const Argument& argument) {
  const codegen::TensorMapShape& map = argument.map;
  if (map.rank == 0) return quoted_tensor(argument.tensor);
  const auto rank = static_cast<std::size_t>(map.rank);
  std::vector<std::int64_t> stride_bytes;
  for (std::size_t i = 1; i < rank; ++i) stride_bytes.push_back(map.strides[i] * map.element_bytes);
  const std::size_t axes = map.im2col ? 2 : rank;
  std::string text = fmt::format(
      "{{\"tensor\": {}, \"type\": \"{}\", \"swizzle_bytes\": {}, \"extents\": [{}], \"stride_bytes\": [{}], "
      "\"box\": [{}]",
      quoted_tensor(argument.tensor),
      map.element_bytes == 2 ? "UINT16"
      : map.rounds_to_tf32   ? "TFLOAT32"
                             : "FLOAT32",
      map.swizzle_bytes, fmt::join(std::span(map.extents).first(rank), ", "), fmt::join(stride_bytes, ", "),
      fmt::join(std::span(map.box).first(axes), ", "));
  if (map.im2col) {
    text += fmt::format(", \"im2col\": {{\"lower\": [{}], \"upper\": [{}], \"stride\": [{}]}}",
                        fmt::join(map.im2col->lower, ", "), fmt::join(map.im2col->upper, ", "),
                        fmt::join(map.im2col->stride, ", "));
  }
  return text + "}";
}

std::string entry_text(const KernelEntry& entry) {
  std::string text = fmt::format("        {{\n            \"name\": \"{}\",\n            \"grid\": ({}, {}, {}),\n",
                                 entry.name, entry.grid[0], entry.grid[1], entry.grid[2]);
  text += fmt::format("            \"threads\": {},\n            \"shared_bytes\": {},\n            \"arguments\": [\n",
                      entry.threads, entry.shared_bytes);
  for (const Argument& argument : entry.arguments) text += "                " + python_argument(argument) + ",\n";
  return text + "            ],\n        },\n";
}

std::string dtype_text(DataType type) {
  switch (type) {
    case DataType::f32:
      return "torch.float32";
    case DataType::f16:
      return "torch.float16";
    case DataType::bf16:
      return "torch.bfloat16";
  }
  return "";
}

/// What PyTorch applies to the result, `{}` being the tensor; empty for nothing.
std::string activation_call(const Epilogue& epilogue) {
  switch (epilogue.activation) {
    case Activation::none:
      return "";
    case Activation::relu:
      return "torch.relu(y)";
    case Activation::leaky_relu:
      return fmt::format("nn.functional.leaky_relu(y, {})", epilogue.slope);
    case Activation::gelu_erf:
      return "nn.functional.gelu(y)";
    case Activation::gelu_tanh:
      return "nn.functional.gelu(y, approximate=\"tanh\")";
    case Activation::silu:
      return "nn.functional.silu(y)";
    case Activation::sigmoid:
      return "torch.sigmoid(y)";
    case Activation::tanh:
      return "torch.tanh(y)";
    case Activation::hardswish:
      return "nn.functional.hardswish(y)";
    case Activation::clamp:
      return fmt::format("nn.functional.hardtanh(y, {}, {})", epilogue.clamp_min, epilogue.clamp_max);
  }
  return "";
}

std::string function_text(const char* name, const std::string& call) {
  return fmt::format("def {}(y):\n    return {}\n\n\n", name, call.empty() ? "y" : call);
}

const char* layout_text(Layout layout) {
  return layout == Layout::nchw ? "torch.contiguous_format" : "torch.channels_last";
}

/// The convolution's numbers under the names that torch_extension.py.in uses.
std::string constants(const ConvSpec& spec, const Target& target) {
  const TensorShape& in = spec.input;
  const WeightShape& w = spec.weight;
  const Padding& pad = spec.padding;
  const TensorShape out = output_shape(spec);
  const bool fused = codegen::derives_from_result(spec.epilogue.activation);
  std::string text = fmt::format("ARCH = \"{}\"\nDTYPE = {}\n", target.arch(), dtype_text(spec.dtype));
  text += fmt::format("INPUT_SHAPE = ({}, {}, {}, {})\n", in.n, in.c, in.h, in.w);
  text += fmt::format("WEIGHT_SHAPE = ({}, {}, {}, {})\n", w.k, w.c, w.r, w.s);
  text += fmt::format("OUTPUT_SHAPE = ({}, {}, {}, {})\n", out.n, out.c, out.h, out.w);
  text += fmt::format("STRIDE, DILATION, GROUPS = ({}, {}), ({}, {}), {}\n", spec.stride.h, spec.stride.w,
                      spec.dilation.h, spec.dilation.w, spec.groups);
  if (pad.top != pad.bottom || pad.left != pad.right) text += "# nn.Conv2d has no word for unequal sides.\n";
  text += fmt::format("PADDING, PAD_SIDES = ({}, {}), ({}, {}, {}, {})\n", pad.top, pad.left, pad.left, pad.right,
                      pad.top, pad.bottom);
  text += fmt::format("BIAS, SAVES_Y, ALIGNMENT = {}, {}, {}\n", spec.epilogue.bias ? "True" : "False",
                      fused ? "True" : "False", spec.alignment);
  text += fmt::format("INPUT_LAYOUT, OUTPUT_LAYOUT = {}, {}\n\n\n", layout_text(spec.input_layout),
                      layout_text(spec.output_layout));
  const std::string call = activation_call(spec.epilogue);
  return text + function_text("ACTIVATION", fused ? "" : call) + function_text("EXACT_ACTIVATION", call);
}

std::string head(const ConvSpec& spec, const Target& target, const std::vector<Part>& all) {
  std::string text = fmt::format(
      "\"\"\"A convolution and its gradients as CUDA kernels for {}, which PyTorch compiles and runs by itself.\n\n"
      "    from FILE import ModelNew\n\n"
      "Written by jitconv-dump --emit=torch-extension for\n\n    {}\n\n"
      "`python FILE.py` compiles the kernels, and on a GPU compares with PyTorch and times both.\n\n",
      target.arch(), to_string(spec));
  for (const Part& part : all)
    text += fmt::format("{}: kernel family {}\n", to_string(part.plan.spec.operation),
                        codegen::to_string(part.plan.family()));
  if (spec.dtype == DataType::f32)
    text += fmt::format("math: {}{}\n", to_string(spec.math),
                        spec.math == MathMode::tf32 ? ", operands may be rounded to TF32" : "");
  if (spec.epilogue.activation != Activation::none && !codegen::derives_from_result(spec.epilogue.activation))
    text += fmt::format("{} is computed by PyTorch: its derivative needs what it was applied to.\n",
                        to_string(spec.epilogue.activation));
  return text +
         "\"\"\"\n\nimport ctypes\nimport functools\nimport glob\nimport sys\n\nimport torch\nfrom torch import nn\n\n";
}

/// A dictionary by operation.
template <typename Value>
std::string by_operation(const char* name, const std::vector<Part>& all, Value value) {
  std::string text = fmt::format("{} = {{\n", name);
  for (const Part& part : all)
    text += fmt::format("    \"{}\": {},\n", to_string(part.plan.spec.operation), value(part));
  return text + "}\n";
}

void require_emittable(const std::vector<Part>& all) {
  for (const Part& part : all) {
    if (part.source.entries.empty())
      throw SpecError(ErrorCode::unsupported, "input", "the convolution has no outputs, so there is no kernel");
    if (part.source.text.find("'''") != std::string::npos)
      throw InternalError("a source that Python's quotes cannot hold");
  }
}

}  // namespace

std::string torch_extension_text(const ConvSpec& spec, const Target& target) {
  if (spec.operation != Operation::forward)
    throw SpecError(
        ErrorCode::unsupported, "operation",
        fmt::format("operation is {}, must be forward: the file has its gradients as well", to_string(spec.operation)));
  if (spec.epilogue.residual)
    throw SpecError(ErrorCode::unsupported, "residual", "residual is 1, must be 0: nn.Conv2d has none");
  const std::vector<Part> all = parts(spec, target);
  require_emittable(all);
  std::string text = head(spec, target, all) + constants(spec, target);
  text += by_operation("OPTIONS", all, [](const Part& part) {
    return fmt::format("[\"{}\"]", fmt::join(part.source.options, "\", \""));
  });
  text += "# Bytes of the regions of the workspace.\n";
  text += by_operation("SCRATCH", all, [](const Part& part) {
    std::vector<std::int64_t> bytes;
    for (const codegen::Scratch& region : part.source.scratch) bytes.push_back(region.bytes);
    return fmt::format("[{}]", fmt::join(bytes, ", "));
  });
  text += "# The kernels of a launch, in order. An argument is a tensor's name, or how TMA sees the tensor.\n";
  text += by_operation("LAUNCHES", all, [](const Part& part) {
    std::string list = "[\n";
    for (const KernelEntry& entry : part.source.entries) list += entry_text(entry);
    return list + "    ]";
  });
  text += by_operation("SOURCES", all, [](const Part& part) { return "r'''\n" + part.source.text + "'''"; });
  return text + "\n" + kTorchExtension;
}

}  // namespace jitconv::tools
