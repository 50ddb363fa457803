// The pass that packs weights, as a part of a plan.
#include "codegen/pack_weights/pass.h"

#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

std::string describe(const KernelPlan& kernel) {
  const auto& tiling = std::get<PackWeightsTiling>(kernel.tiling);
  return fmt::format("packing: a block takes {} slice(s) of {} output channels\n", tiling.block_slices,
                     tiling.block_channels);
}

}  // namespace

void add_weight_packing(ConvPlan& plan, PackWeightsTiling tiling) {
  KernelPlan& convolution = plan.convolution();
  KernelPlan pass;
  pass.problem = convolution.problem;
  tiling.packed = scratch_tensor(plan.scratch.size());
  tiling.choose_block(pass.problem);
  convolution.problem.weight.tensor = tiling.packed;
  convolution.starts_early = true;
  plan.scratch.push_back({"packed_w", tiling.packed_bytes(pass.problem), /*is_packed_weights=*/true});
  pass.launch.blocks = static_cast<std::uint32_t>(tiling.blocks(pass.problem));
  pass.launch.threads = PackWeightsTiling::kThreads;
  pass.launch.shared_bytes = static_cast<std::uint32_t>(tiling.shared_bytes(pass.problem));
  pass.tiling = tiling;
  plan.kernels.insert(plan.kernels.begin(), pass);
}

FamilyFunctions pack_weights_pass() {
  return {.name = "pack_weights", .reads_any_weight = true, .emit = pack_weights::emit, .describe = describe};
}

}  // namespace jitconv::codegen
