// The pass that multiplies dy by the activation's derivative, as a part of a plan.
#include "codegen/activation_gradient/pass.h"

#include <algorithm>

#include "codegen/arithmetic.h"
#include "codegen/cost.h"
#include "fmt/format.h"
#include "jitconv/error.h"

namespace jitconv::codegen {
namespace {

constexpr Tensor kDz = scratch_tensor(0);

std::string describe(const KernelPlan& kernel) {
  return fmt::format("activation gradient: a thread makes {} element(s) of dz\n",
                     std::get<ActivationGradientTiling>(kernel.tiling).vector);
}

std::int64_t dy_bytes(const Problem& asked) { return asked.dy_elements() * asked.dy().element_bytes(); }

}  // namespace

Tensor add_dz(ConvPlan& plan, const Problem& asked) {
  if (!plan.scratch.empty()) throw InternalError("dz is the first region of scratch");
  plan.scratch.push_back({"dz", round_up(dy_bytes(asked), 256)});
  return kDz;
}

void add_activation_gradient(ConvPlan& plan, const Problem& asked) {
  ActivationGradientTiling tiling;
  tiling.dz = kDz;
  tiling.vector = static_cast<int>(std::min<std::int64_t>(16, asked.alignment) / asked.dy().element_bytes());
  const std::int64_t elements = std::int64_t{ActivationGradientTiling::kThreads} * tiling.vector;  // of a block
  const std::int64_t blocks = ceil_div(asked.dy_elements(), elements);
  if (blocks > INT32_MAX)
    throw SpecError(ErrorCode::unsupported, "dy_activation",
                    fmt::format("dy_activation is {}, and its pass over dy takes {} thread blocks, must be at most "
                                "2^31 - 1",
                                to_string(asked.dy_activation), blocks));
  KernelPlan pass{asked, tiling, {}};
  pass.launch.blocks = static_cast<std::uint32_t>(blocks);
  pass.launch.threads = ActivationGradientTiling::kThreads;
  pass.wide_index = asked.dy_elements() > INT32_MAX - elements;
  // A launch with packed weights begins behind the kernels that pack them.
  const auto reader = std::find_if(plan.kernels.begin(), plan.kernels.end(),
                                   [](const KernelPlan& kernel) { return !packs_weights(kernel.family()); });
  // It waits only for what it knows to be another kernel's: packed weights, or transposed pixels.
  reader->starts_early = false;
  plan.kernels.insert(reader, pass);
}

bool derives_from_result(Activation activation) {
  return activation == Activation::relu || activation == Activation::leaky_relu || activation == Activation::clamp;
}

std::int64_t activation_gradient_cost(const Problem& asked, const FmaCosts& costs) {
  return pass_price(3 * dy_bytes(asked), costs);  // dy, saved and dz
}

FamilyFunctions activation_gradient_pass() {
  return {.name = "activation_gradient", .emit = activation_gradient::emit, .describe = describe};
}

}  // namespace jitconv::codegen
