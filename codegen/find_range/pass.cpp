// The passes that find ranges, as parts of a plan.
#include "codegen/find_range/pass.h"

#include "codegen/f16_pairs.h"

namespace jitconv::codegen {
namespace {

KernelPlan range_pass(const Problem& problem, const Tiling& tiling) {
  KernelPlan pass{problem, tiling, {}};
  pass.launch.blocks = kLargestParts;
  pass.launch.threads = FindRangeTiling::kThreads;
  pass.launch.shared_bytes = FindRangeTiling::kThreads / 32 * sizeof(std::uint32_t);
  return pass;
}

std::string describe(const KernelPlan&) { return "range: the largest magnitude of a tensor\n"; }

}  // namespace

void add_weight_range(ConvPlan& plan) {
  KernelPlan& packing = plan.kernels.front();
  const auto& packed = std::get<PackWeightsTiling>(packing.tiling);
  const FindWeightRangeTiling tiling{{.source = packing.problem.weight.tensor,
                                      .elements = PackWeightsTiling::source_elements(packing.problem),
                                      .region = packed.packed,
                                      .range_row = packed.range_row(packing.problem)}};
  packing.starts_early = true;
  plan.kernels.insert(plan.kernels.begin(), range_pass(packing.problem, tiling));
}

void add_input_range(ConvPlan& plan) {
  const auto convolution = plan.convolution_place();
  const Tensor region = scratch_tensor(plan.scratch.size());
  const FindInputRangeTiling tiling{{.source = convolution->problem.input.tensor,
                                     .elements = convolution->problem.input_elements(),
                                     .region = region}};
  KernelPlan pass = range_pass(convolution->problem, tiling);
  pass.starts_early = convolution != plan.kernels.begin();
  convolution->problem.input.range = region;
  convolution->starts_early = true;
  plan.scratch.push_back({"x_range", kRangeBytes});
  plan.kernels.insert(convolution, pass);
}

FamilyFunctions find_weight_range_pass() {
  return {.name = "find_weight_range", .emit = find_range::emit_of_weight, .describe = describe};
}

FamilyFunctions find_input_range_pass() {
  return {.name = "find_input_range", .emit = find_range::emit_of_input, .describe = describe};
}

}  // namespace jitconv::codegen
