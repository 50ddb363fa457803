// The pass that transposes the input, as a part of a plan.
#include "codegen/transpose_input/pass.h"

#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

std::string describe(const KernelPlan& kernel) {
  const auto& tiling = std::get<TransposeInputTiling>(kernel.tiling);
  return fmt::format("transposing: a block makes {} slice(s) of {} pixels\n", tiling.slices, tiling.pixels);
}

}  // namespace

void add_input_transposition(ConvPlan& plan) {
  const auto convolution = plan.convolution_place();
  Problem transposed = transposed_problem(convolution->problem);
  transposed.input.tensor = scratch_tensor(plan.scratch.size());
  const TransposeInputTiling tiling = transpose_input_tiling(convolution->problem, transposed);
  KernelPlan pass{transposed, tiling, {}};
  pass.launch.blocks = static_cast<std::uint32_t>(tiling.blocks(transposed));
  pass.launch.threads = TransposeInputTiling::kThreads;
  pass.launch.shared_bytes = static_cast<std::uint32_t>(tiling.shared_bytes());
  pass.starts_early = convolution != plan.kernels.begin();
  convolution->problem = transposed;
  convolution->starts_early = true;
  plan.scratch.push_back({"transposed_x", TransposeInputTiling::transposed_bytes(transposed)});
  plan.kernels.insert(convolution, pass);
}

FamilyFunctions transpose_input_pass() {
  return {.name = "transpose_input", .emit = transpose_input::emit, .describe = describe};
}

}  // namespace jitconv::codegen
