// Prints templates/reduce/filters.cu.in: the reduce pass behind a weight gradient whose sums lie as [tap][k][c].
#include <algorithm>
#include <string>
#include <utility>

#include "codegen/reduce/pass.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

constexpr int kLoads = 8;  // of a thread, on their way at the same time

std::string constants(const Problem& problem, const ReduceTiling& tiling) {
  Constants c;
  c.group("dw, and the partial sums of each of its elements");
  c.add("kThreads", ReduceTiling::kThreads).add("kOutputs", problem.output_elements());
  c.add("kTaps", problem.taps()).add("kFilters", tiling.filters(problem), "of one input channel each");
  c.add("kBlockFilters", tiling.block_filters);
  if (tiling.bias_sums > 0)
    c.add("kFilterBlocks", tiling.filter_blocks(problem))
        .add("kBiasSums", tiling.bias_sums, "of db, behind the outputs");
  c.add("kSplits", tiling.split_k).add("kPartialSumStride", tiling.stride, "floats from a split to the next");
  return c.text();
}

/// The blocks behind those of dw add db.
std::string bias_gradient(const Problem& problem, const ReduceTiling& tiling) {
  if (tiling.bias_sums == 0) return {};
  return fmt::format(
      "if (blockIdx.x >= kFilterBlocks) {{\n"
      "  const int k = static_cast<int>(blockIdx.x - kFilterBlocks) * kThreads + static_cast<int>(threadIdx.x);\n"
      "  if (k < kBiasSums) db[k] = {};\n"
      "  return;\n"
      "}}\n",
      stores_floats(problem) ? "add_splits(kOutputs + k)" : "from_float(add_splits(kOutputs + k))");
}

}  // namespace

KernelText reduce::emit_filters(const KernelPlan& kernel, std::string_view name) {
  const auto& tiling = std::get<ReduceTiling>(kernel.tiling);
  Holes own = {{"constants", constants(kernel.problem, tiling)},
               {"loads", std::to_string(std::max(1, kLoads / tiling.split_k))},
               {"bias_gradient", bias_gradient(kernel.problem, tiling)}};
  return fill(kernel, name, "reduce/filters.cu.in", std::move(own));
}

}  // namespace jitconv::codegen
