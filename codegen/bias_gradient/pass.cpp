// The pass that sums dy for the bias gradient, as a part of a plan.
#include "codegen/bias_gradient/pass.h"

#include "codegen/cost.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

std::string describe(const KernelPlan& kernel) {
  return fmt::format("bias gradient: {} shares of the pixels of dy, summed by a kernel of their own\n",
                     std::get<BiasGradientTiling>(kernel.tiling).shares);
}

}  // namespace

void add_bias_gradient(ConvPlan& plan, const Problem& asked, const BiasGradientTiling& tiling) {
  KernelPlan pass{asked, tiling, {}};
  pass.launch.blocks = static_cast<std::uint32_t>(tiling.shares * asked.output_channels());
  pass.launch.threads = BiasGradientTiling::kThreads;
  pass.launch.shared_bytes = 4 * BiasGradientTiling::kThreads / 32;
  // Not between kernels of which one may start before the other ends.
  plan.kernels.insert(plan.kernels.begin(), pass);
}

std::int64_t bias_gradient_cost(const Problem& asked, const FmaCosts& costs) {
  return pass_price(asked.output_elements() * asked.output.element_bytes(), costs);
}

FamilyFunctions bias_gradient_pass() {
  return {.name = "bias_gradient", .emit = bias_gradient::emit, .describe = describe};
}

}  // namespace jitconv::codegen
