// The pass that transposes the input, as a part of a plan.
#include "codegen/transpose_input/pass.h"

#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

std::string describe(const KernelPlan& kernel) {
  const auto& tiling = std::get<TransposeInputTiling>(kernel.tiling);
  return fmt::format("{}: a block makes {} slice(s) of {} pixels\n",
                     kernel.problem.input.is_f16_pairs ? "splitting" : "transposing", tiling.slices, tiling.pixels);
}

/// Makes `transposed`'s input in a new region.
void add_pass(ConvPlan& plan, Problem transposed) {
  const auto convolution = plan.convolution_place();
  transposed.input.tensor = scratch_tensor(plan.scratch.size());
  const TransposeInputTiling tiling = transpose_input_tiling(convolution->problem, transposed);
  KernelPlan pass{transposed, tiling, {}};
  pass.launch.blocks = static_cast<std::uint32_t>(tiling.blocks(transposed));
  pass.launch.threads = TransposeInputTiling::kThreads;
  pass.launch.shared_bytes = static_cast<std::uint32_t>(tiling.shared_bytes());
  pass.starts_early = convolution != plan.kernels.begin();
  convolution->problem = transposed;
  convolution->starts_early = true;
  plan.scratch.push_back(
      {transposed.input.is_f16_pairs ? "split_x" : "transposed_x", TransposeInputTiling::transposed_bytes(transposed)});
  plan.kernels.insert(convolution, pass);
}

}  // namespace

void add_input_transposition(ConvPlan& plan) { add_pass(plan, transposed_problem(plan.convolution().problem)); }

void add_input_splitting(ConvPlan& plan) { add_pass(plan, split_problem(plan.convolution().problem)); }

FamilyFunctions transpose_input_pass() {
  return {.name = "transpose_input", .emit = transpose_input::emit, .describe = describe};
}

}  // namespace jitconv::codegen
