// The pass that transposes weights, as a part of a plan.
#include "codegen/transpose_weights/pass.h"

#include "codegen/arithmetic.h"
#include "codegen/cost.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

std::string describe(const KernelPlan&) { return "transposing weights: dense, before the convolution\n"; }

}  // namespace

Problem with_dense_weight(const Problem& problem) {
  Problem dense = problem;
  dense.weight = dense_weight(problem.weight.tensor, problem.weight.type, problem.k, problem.c, problem.rows.taps,
                              problem.columns.taps);
  if (dense.weight != problem.weight) dense.asked_weight = problem.weight;
  return dense;
}

std::int64_t TransposeWeightsTiling::blocks(const Problem& asked) {
  if (!takes_tiles(asked)) return ceil_div(asked.weight_elements(), std::int64_t{kThreads});
  return asked.groups * ceil_div(asked.k, std::int64_t{kTileK}) * ceil_div(asked.c, std::int64_t{kTileC});
}

void add_weight_transposition(ConvPlan& plan, const Problem& asked) {
  KernelPlan& convolution = plan.convolution();
  TransposeWeightsTiling tiling;
  tiling.dense = scratch_tensor(plan.scratch.size());
  convolution.problem.weight.tensor = tiling.dense;
  const auto awaits_weights = functions_of(convolution.family()).awaits_weights;
  convolution.starts_early = awaits_weights != nullptr && awaits_weights(convolution.tiling);
  tiling.lets_next_start = convolution.starts_early;
  KernelPlan pass{asked, tiling, {}};
  pass.launch.blocks = static_cast<std::uint32_t>(TransposeWeightsTiling::blocks(asked));
  pass.launch.threads = TransposeWeightsTiling::kThreads;
  plan.scratch.push_back({"dense_w", round_up(asked.weight_elements() * asked.weight.element_bytes(), 256),
                          /*is_packed_weights=*/true});
  plan.kernels.insert(plan.kernels.begin(), pass);
}

std::int64_t weight_transposition_cost(const Problem& problem, const FmaCosts& costs) {
  constexpr std::int64_t kSector = 32;  // of each element, which its neighbours do not share
  const std::int64_t element = problem.weight.element_bytes();
  const std::int64_t read = TransposeWeightsTiling::takes_tiles(problem) ? element : kSector;
  return pass_price(problem.weight_elements() * (read + element), costs);
}

FamilyFunctions transpose_weights_pass() {
  return {.name = "transpose_weights", .emit = transpose_weights::emit, .describe = describe};
}

}  // namespace jitconv::codegen
