// Prints templates/reduce/kernel.cu.in.
#include <utility>

#include "codegen/phases.h"
#include "codegen/reduce/pass.h"
#include "codegen/text/epilogue.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

/// The sums of db lie behind those of dw.
std::string bias_gradient(const Problem& problem, const ReduceTiling& tiling) {
  if (tiling.bias_sums == 0) return {};
  return fmt::format("if (output >= kOutputs) {{\n  db[output - kOutputs] = {};\n  return;\n}}\n",
                     stores_floats(problem) ? "value" : "from_float(value)");
}

std::string constants(const KernelPlan& kernel, const ReduceTiling& tiling) {
  const Problem& problem = kernel.problem;
  Constants c;
  c.group("Outputs, and the partial sums of each");
  c.add("kThreads", ReduceTiling::kThreads).add("kOutputs", problem.output_elements());
  if (tiling.bias_sums > 0) c.add("kBiasSums", tiling.bias_sums, "of db, behind the outputs");
  c.add("kSplits", tiling.split_k).add("kPartialSumStride", tiling.sums.stride, "floats from a split to the next");
  if (problem.epilogue.bias) {
    c.add("kOutputChannels", problem.output_channels());
    if (problem.output.layout() == Layout::nchw) c.add("kPlane", problem.output_plane(), "P * Q");
  }
  return c.text();
}

}  // namespace

std::vector<Argument> reduce::parameters(const KernelPlan& kernel, const ReduceTiling& tiling) {
  // Not __restrict__: the compiler would take loads through it for independent of the wait for the convolution.
  std::vector<Argument> result = {{tiling.partial_sums, "const float*", "partial_sums"}};
  for (Argument& argument : arguments(kernel.problem)) {
    if (argument.name == "x" || argument.name == "w") continue;
    if (argument.tensor == Tensor::dw) argument.name = "dw";
    result.push_back(std::move(argument));
  }
  if (tiling.bias_sums > 0)
    result.push_back(
        {Tensor::db, stores_floats(kernel.problem) ? "float* __restrict__" : "Element* __restrict__", "db"});
  return result;
}

std::vector<DeviceFile> reduce::device_files(const KernelPlan& kernel, const ReduceTiling& tiling) {
  std::vector<DeviceFile> files = {{element_header(kernel.problem.input.type)}};
  if (kernel.starts_early) files.push_back({"device/dependent_launch.cuh"});
  if (needs_phases(kernel.problem) && kernel.problem.output.layout() == Layout::nhwc)
    files.push_back({"device/vector.cuh"});
  if (kernel.problem.epilogue.activation == Activation::relu && tiling.relu == Relu::instruction)
    files.push_back({"device/max_nan.cuh"});
  return files;
}

std::string reduce::wait(const KernelPlan& kernel) { return kernel.starts_early ? "wait_for_previous_kernel();" : ""; }

// Hundreds of splits are not worth a text of their own each.
std::string reduce::unroll(const ReduceTiling& tiling) { return tiling.split_k > 32 ? " 16" : ""; }

KernelText reduce::fill(const KernelPlan& kernel, std::string_view name, std::string_view file, Holes own) {
  const auto& tiling = std::get<ReduceTiling>(kernel.tiling);
  const bool floats = stores_floats(kernel.problem);
  KernelText text;
  text.arguments = parameters(kernel, tiling);
  text.files = device_files(kernel, tiling);
  own.merge(Holes{{"kernel", std::string(name)},
                  {"parameters", parameter_list(text.arguments)},
                  {"wait", wait(kernel)},
                  {"unroll", unroll(tiling)},
                  {"epilogue", epilogue_lines(kernel.problem.epilogue,
                                              {.residual = floats ? "residual[output]" : residual_at("output")})},
                  {"stored", floats ? "value" : "from_float(value)"}});
  text.text = fill_template(embedded_text(file), own);
  return text;
}

KernelText reduce::emit(const KernelPlan& kernel, std::string_view name) {
  if (needs_phases(kernel.problem)) return emit_interleaving(kernel, name);
  const auto& tiling = std::get<ReduceTiling>(kernel.tiling);
  if (tiling.block_filters > 0) return emit_filters(kernel, name);
  const Epilogue& epilogue = kernel.problem.epilogue;
  const bool nhwc = kernel.problem.output.layout() == Layout::nhwc;
  Holes own = {{"constants", constants(kernel, tiling)},
               {"activation", activation_function(epilogue, tiling.relu)},
               {"channel_values",
                channel_values(epilogue, nhwc ? "output % kOutputChannels" : "output / kPlane % kOutputChannels")},
               {"result", kernel.problem.output.tensor == Tensor::dw ? "dw" : "y"},
               {"outputs", tiling.bias_sums > 0 ? "kOutputs + kBiasSums" : "kOutputs"},
               {"bias_gradient", bias_gradient(kernel.problem, tiling)}};
  return fill(kernel, name, "reduce/kernel.cu.in", std::move(own));
}

}  // namespace jitconv::codegen
