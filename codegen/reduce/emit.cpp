// Prints templates/reduce/kernel.cu.in.
#include "codegen/reduce/pass.h"

namespace jitconv::codegen {
namespace {

std::vector<Argument> parameters(const KernelPlan& kernel, const ReduceTiling& tiling) {
  // Not __restrict__: the compiler would take loads through it for independent of the wait for the convolution.
  std::vector<Argument> result = {{tiling.partial_sums, "const float*", "partial_sums"}};
  for (Argument& argument : arguments(kernel.problem))
    if (argument.name != "x" && argument.name != "w") result.push_back(std::move(argument));
  return result;
}

std::string constants(const KernelPlan& kernel, const ReduceTiling& tiling) {
  const Problem& problem = kernel.problem;
  Constants c;
  c.group("Outputs, and the partial sums of each");
  c.add("kThreads", ReduceTiling::kThreads).add("kOutputs", problem.output_elements());
  c.add("kSplits", tiling.split_k).add("kPartialSumStride", tiling.stride, "floats from a split to the next");
  if (problem.epilogue.bias) {
    c.add("kOutputChannels", problem.output_channels());
    if (problem.output.layout() == Layout::nchw) c.add("kPlane", problem.output_plane(), "P * Q");
  }
  std::string text = c.text();
  text.pop_back();
  return text;
}

}  // namespace

KernelText reduce::emit(const KernelPlan& kernel, std::string_view name) {
  const auto& tiling = std::get<ReduceTiling>(kernel.tiling);
  const Epilogue& epilogue = kernel.problem.epilogue;
  KernelText text;
  text.arguments = parameters(kernel, tiling);
  text.files = {{element_header(kernel.problem.output.type)}, {"device/dependent_launch.cuh"}};
  if (epilogue.activation == Activation::relu && tiling.relu == Relu::instruction)
    text.files.push_back({"device/max_nan.cuh"});
  const bool nhwc = kernel.problem.output.layout() == Layout::nhwc;
  text.text = fill_template(embedded_text("reduce/kernel.cu.in"),
                            {{"constants", constants(kernel, tiling)},
                             {"activation", activation_function(epilogue, tiling.relu)},
                             {"kernel", std::string(name)},
                             {"parameters", parameter_list(text.arguments)},
                             {"channel_values", channel_values(epilogue, nhwc ? "output % kOutputChannels"
                                                                              : "output / kPlane % kOutputChannels")},
                             {"epilogue", epilogue_lines(epilogue, "output")}});
  return text;
}

}  // namespace jitconv::codegen
