// The pass that gathers patches, as a part of a plan.
#include "codegen/gather_patches/pass.h"

#include "codegen/arithmetic.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

std::string describe(const KernelPlan& kernel) {
  const auto& tiling = std::get<GatherPatchesTiling>(kernel.tiling);
  return fmt::format("gathering: patches of {} elements, {} of x at a time\n", tiling.patch_elements(),
                     tiling.load_elements());
}

}  // namespace

void add_patch_gathering(ConvPlan& plan, const Problem& asked) {
  const auto convolution = plan.convolution_place();
  convolution->problem.input.tensor = scratch_tensor(plan.scratch.size());
  const GatherPatchesTiling tiling = gather_patches_tiling(asked);
  KernelPlan pass{convolution->problem, tiling, {}};
  pass.launch.blocks = static_cast<std::uint32_t>(tiling.blocks(pass.problem));
  pass.launch.threads = GatherPatchesTiling::kThreads;
  pass.starts_early = convolution != plan.kernels.begin();
  convolution->starts_early = true;
  plan.scratch.push_back(
      {"patches", round_up(tiling.all_rows(pass.problem) * GatherPatchesTiling::kRowBytes, std::int64_t{256})});
  plan.kernels.insert(convolution, pass);
}

FamilyFunctions gather_patches_pass() {
  return {.name = "gather_patches", .emit = gather_patches::emit, .describe = describe};
}

}  // namespace jitconv::codegen
