// Puts a generated kernel, the numbers of its convolution and harness_main.cuh into one file. The numbers are written
// out again here, from the spec: the harness shares nothing with the planner.
#include "tools/harness.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "jitconv/error.h"

namespace jitconv::tools {
namespace {

using codegen::KernelEntry;
using codegen::KernelSource;
using codegen::Tensor;

const char* element_type(DataType type) {
  switch (type) {
    case DataType::f32:
      return "float";
    case DataType::f16:
      return "__half";
    case DataType::bf16:
      return "__nv_bfloat16";
  }
  return "";
}

/// Half a unit in the last place of the type, relative: how far rounding the result may move it.
const char* output_error(DataType type) {
  switch (type) {
    case DataType::f32:
      return "0x1p-24";
    case DataType::f16:
      return "0x1p-11";
    case DataType::bf16:
      return "0x1p-8";
  }
  return "";
}

std::string activation_text(const Epilogue& epilogue) {
  switch (epilogue.activation) {
    case Activation::none:
      return "v";
    case Activation::relu:
      return "v > 0 ? v : 0";
    case Activation::leaky_relu:
      return fmt::format("v >= 0 ? v : {:a} * v", static_cast<double>(epilogue.slope));
    case Activation::gelu_erf:
      return "0.5 * v * (1 + std::erf(v * 0.70710678118654752440))";
    case Activation::gelu_tanh:
      return "0.5 * v * (1 + std::tanh(0.79788456080286535588 * (v + 0.044715 * v * v * v)))";
    case Activation::silu:
      return "v / (1 + std::exp(-v))";
    case Activation::sigmoid:
      return "1 / (1 + std::exp(-v))";
    case Activation::tanh:
      return "std::tanh(v)";
    case Activation::hardswish:
      return "v * std::fmin(std::fmax(v + 3, 0.0), 6.0) / 6";
    case Activation::clamp:
      return fmt::format("std::fmin(std::fmax(v, {:a}), {:a})", static_cast<double>(epilogue.clamp_min),
                         static_cast<double>(epilogue.clamp_max));
  }
  return "";
}

/// The member of the harness's Buffers that a kernel's parameter leads to.
std::string buffer_name(Tensor tensor) {
  switch (tensor) {
    case Tensor::x:
      return "x";
    case Tensor::w:
      return "w";
    case Tensor::bias:
      return "bias";
    case Tensor::residual:
      return "residual";
    case Tensor::y:
      return "y";
    default:
      break;
  }
  if (!codegen::is_scratch(tensor)) throw InternalError("a tensor that the harness does not have");
  return fmt::format("scratch[{}]", static_cast<int>(tensor) - static_cast<int>(Tensor::scratch));
}

std::string constants(const codegen::ConvPlan& plan, const KernelSource& source) {
  const ConvSpec& spec = plan.spec;
  const TensorShape out = output_shape(spec);
  const codegen::Work work = codegen::work(spec);
  std::string text = "namespace harness {\n\n";
  const auto line = [&text](const char* names, auto... values) {
    text += "constexpr long long ";
    text += fmt::format(fmt::runtime(names), values...);
    text += ";\n";
  };
  line("kN = {}, kC = {}, kH = {}, kW = {}", spec.input.n, spec.input.c, spec.input.h, spec.input.w);
  line("kK = {}, kFilterC = {}, kR = {}, kS = {}", spec.weight.k, spec.weight.c, spec.weight.r, spec.weight.s);
  line("kP = {}, kQ = {}", out.h, out.w);
  line("kStrideH = {}, kStrideW = {}", spec.stride.h, spec.stride.w);
  line("kPadTop = {}, kPadLeft = {}", spec.padding.top, spec.padding.left);
  line("kDilationH = {}, kDilationW = {}", spec.dilation.h, spec.dilation.w);
  line("kGroups = {}, kWorkspaceBytes = {}", spec.groups, plan.workspace_bytes());
  text += fmt::format("constexpr bool kInputNhwc = {}, kOutputNhwc = {}, kBias = {}, kResidual = {};\n",
                      spec.input_layout == Layout::nhwc, spec.output_layout == Layout::nhwc, spec.epilogue.bias,
                      spec.epilogue.residual);
  text += fmt::format("constexpr double kFlop = {:.17g}, kBytes = {:.17g};\n", work.flop, work.bytes);
  text += fmt::format("constexpr double kOutputError = {};\n", output_error(spec.dtype));
  // Two operands rounded to 11 significant bits, and the product of the two errors.
  text += fmt::format("constexpr double kOperandError = {};\n",
                      spec.math == MathMode::tf32 ? "2 * 0x1p-11 + 0x1p-22" : "0");
  // The largest slope of any activation is hardswish's 3/2, but for a leaky ReLU's own.
  const double slope = std::fabs(static_cast<double>(spec.epilogue.slope));
  text += fmt::format("constexpr double kSteepest = {:.9g};\n",
                      spec.epilogue.activation == Activation::leaky_relu ? std::max(1.5, slope) : 1.5);
  text += fmt::format("using Element = {};\n\n", element_type(spec.dtype));
  text += fmt::format("inline double activation(double v) {{ return {}; }}\n\n", activation_text(spec.epilogue));
  text += fmt::format(
      "struct Buffers {{\n  const void *x, *w, *bias, *residual;\n  void *y, *workspace;\n  void* "
      "scratch[{}];\n}};\n\n",
      std::max<std::size_t>(1, source.scratch.size()));
  return text;
}

/// What a kernel gets for an argument: a pointer of the type it wants, or a tensor map over it.
std::string harness_argument(const codegen::Argument& argument) {
  const codegen::TensorMapShape& map = argument.map;
  if (map.rank == 0) return fmt::format("Pointer{{b.{}}}", buffer_name(argument.tensor));
  const auto rank = static_cast<std::size_t>(map.rank);
  std::vector<std::int64_t> stride_bytes;
  for (std::size_t i = 1; i < rank; ++i) stride_bytes.push_back(map.strides[i] * map.element_bytes);
  const char* type = map.element_bytes == 2 ? "UINT16" : map.rounds_to_tf32 ? "TFLOAT32" : "FLOAT32";
  const std::string swizzle = map.swizzle_bytes == 0 ? "NONE" : fmt::format("{}B", map.swizzle_bytes);
  const std::string tensor = fmt::format(
      "(b.{}, CU_TENSOR_MAP_DATA_TYPE_{}, CU_TENSOR_MAP_SWIZZLE_{},\n"
      "                                {{{}}}, {{{}}}, ",
      buffer_name(argument.tensor), type, swizzle, fmt::join(std::span(map.extents).first(rank), ", "),
      fmt::join(stride_bytes, ", "));
  if (!map.im2col)
    return fmt::format("tensor_map<TensorMap>{}{{{}}})", tensor, fmt::join(std::span(map.box).first(rank), ", "));
  return fmt::format("tensor_im2col<TensorMap>{}{}, {}, {{{}}}, {{{}}}, {{{}}})", tensor, map.box[0], map.box[1],
                     fmt::join(map.im2col->lower, ", "), fmt::join(map.im2col->upper, ", "),
                     fmt::join(map.im2col->stride, ", "));
}

std::string launch_text(const KernelSource& source) {
  std::string prepare = "inline void prepare() {\n";
  std::string launch = "inline void launch(Buffers b, cudaStream_t stream) {\n";
  std::int64_t first = 0;
  for (std::size_t i = 0; i < source.scratch.size(); ++i) {
    launch += fmt::format("  b.scratch[{}] = static_cast<char*>(b.workspace) + {};  // {}\n", i, first,
                          source.scratch[i].name);
    first += source.scratch[i].bytes;
  }
  for (const KernelEntry& entry : source.entries) {
    prepare += fmt::format(
        "  HARNESS_CALL(cudaFuncSetAttribute(reinterpret_cast<const void*>({}),\n"
        "                                    cudaFuncAttributeMaxDynamicSharedMemorySize, {}));\n",
        entry.scope + entry.name, entry.shared_bytes);
    // As the runtime launches it: all kernels of a launch but the first may start early.
    const bool early = entry.starts_early && &entry != source.entries.data();
    launch += fmt::format("  enqueue({}, dim3({}, {}, {}), {}, {}, stream, /*early=*/{}", entry.scope + entry.name,
                          entry.grid[0], entry.grid[1], entry.grid[2], entry.threads, entry.shared_bytes, early);
    for (const codegen::Argument& argument : entry.arguments) launch += ",\n          " + harness_argument(argument);
    launch += ");\n";
  }
  return prepare + "}\n\n" + launch + "}\n\n}  // namespace harness\n\n";
}

/// nvcc's option for exactly this target: with -arch=sm_90a it also makes PTX for sm_90, which lacks instructions.
std::string nvcc_flag(const Target& target) {
  const std::string arch = target.arch();
  return fmt::format("-gencode arch=compute{},code={}", arch.substr(arch.find('_')), arch);
}

/// Stops the compilation for an architecture that lacks what the kernel uses, before the assembler says so at length.
std::string architecture_guard(const Target& target, std::string_view kernel) {
  const std::string arch = target.arch();
  std::string lacks = fmt::format("__CUDA_ARCH__ < {}", target.compute_capability() * 10);
  // Instructions of one architecture alone come with the suffix a, for which nvcc defines a macro.
  const auto uses = [kernel](std::string_view name) { return kernel.find(name) != std::string_view::npos; };
  if (arch.back() == 'a' && (uses("wgmma.") || uses("setmaxnreg.") || uses("tcgen05.")))
    lacks = fmt::format("!defined(__CUDA_ARCH_FEAT_SM{}_ALL)", target.compute_capability());
  return fmt::format(
      "#if defined(__CUDA_ARCH__) && {}\n#error \"this kernel uses instructions of {}: compile it with nvcc {}\"\n"
      "#endif\n\n",
      lacks, arch, nvcc_flag(target));
}

}  // namespace

std::string harness_text(const codegen::ConvPlan& plan, const KernelSource& source) {
  if (plan.spec.operation != Operation::forward) {
    throw SpecError(ErrorCode::unsupported, "operation",
                    fmt::format("operation is {}, must be forward: the harness checks y only; jitconv-run checks the "
                                "gradients",
                                to_string(plan.spec.operation)));
  }
  std::string text = "// A jitconv kernel with a main around it. Build and run:\n";
  text += fmt::format("//   nvcc {} -o harness FILE.cu && ./harness\n", nvcc_flag(plan.target));
  text += fmt::format("// {}\n", to_string(plan.spec));
  text += "// jitconv itself compiles the kernel with NVRTC and these options:\n//  ";
  for (const std::string& option : source.options) text += " " + option;
  // A kernel states constants that it may not need; NVRTC does not mind.
  text += "\n#pragma nv_diag_suppress 177\n\n";
  text += architecture_guard(plan.target, source.text) + source.text;
  text +=
      "\n#include <cuda.h>\n#include <cuda_bf16.h>\n#include <cuda_fp16.h>\n#include <cuda_runtime.h>\n\n"
      "#include <algorithm>\n#include <cmath>\n#include <cstdio>\n#include <cstdlib>\n\n";
  // What harness_main.cuh has before this line is what launch_text() uses; what it has behind uses launch_text().
  const std::string main_text = kHarnessMain, convolution = "// The convolution's numbers and launch come here.\n\n";
  const std::size_t split = main_text.find(convolution);
  text += main_text.substr(0, split);
  text += constants(plan, source) + launch_text(source);
  text += main_text.substr(split + convolution.size());
  return text;
}

}  // namespace jitconv::tools
