// The pass that adds partial sums, as a part of a plan.
#include "codegen/reduce/pass.h"

#include "codegen/arithmetic.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

std::string describe(const KernelPlan& kernel) {
  return fmt::format("reduction: split over {} blocks, partial sums added by another kernel\n",
                     std::get<ReduceTiling>(kernel.tiling).split_k);
}

}  // namespace

void add_reduction(ConvPlan& plan, int split_k, std::int64_t stride, Relu relu) {
  KernelPlan& convolution = plan.convolution();
  KernelPlan pass;
  pass.problem = convolution.problem;
  ReduceTiling tiling;
  tiling.partial_sums = scratch_tensor(plan.scratch.size());
  tiling.split_k = split_k;
  tiling.stride = stride;
  tiling.relu = relu;
  pass.tiling = tiling;
  pass.launch.blocks = static_cast<std::uint32_t>(ceil_div(pass.problem.output_elements(), ReduceTiling::kThreads));
  pass.launch.threads = ReduceTiling::kThreads;
  pass.starts_early = true;
  convolution.problem.output.tensor = tiling.partial_sums;
  plan.scratch.push_back({"partial_sums", 4 * split_k * stride});
  plan.kernels.push_back(pass);
}

FamilyFunctions reduce_pass() { return {.name = "reduce", .emit = reduce::emit, .describe = describe}; }

}  // namespace jitconv::codegen
