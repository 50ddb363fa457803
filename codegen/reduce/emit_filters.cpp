// Prints templates/reduce/filters.cu.in: the reduce pass behind a weight gradient whose sums lie as [tap][k][c], or as
// [tap][c][k] with taps from last to first.
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
  if (tiling.exchanged_k > 0) {
    c.add("kChannels", problem.c, "of a group").add("kGroupK", tiling.exchanged_k);
    c.add("kGroups", tiling.filters(problem) / (problem.c * tiling.exchanged_k));
  }
  if (tiling.bias_sums > 0)
    c.add("kFilterBlocks", tiling.filter_blocks(problem))
        .add("kBiasSums", tiling.bias_sums, "of db, behind the outputs");
  c.add("kSplits", tiling.split_k).add("kPartialSumStride", tiling.stride, "floats from a split to the next");
  return c.text();
}

/// Where the sums of a filter's tap are.
std::string place(const ReduceTiling& tiling) {
  if (tiling.exchanged_k == 0) return "tap * static_cast<long long>(kFilters) + first_filter + filter";
  return "((kTaps - 1 - tap) * static_cast<long long>(kGroups * kChannels) + k / kGroupK * kChannels + c) * kGroupK + "
         "k % kGroupK";
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
               {"filter_channels", tiling.exchanged_k > 0
                                       ? "const long long k = (first_filter + filter) / kChannels;\n"
                                         "const int c = static_cast<int>((first_filter + filter) % kChannels);\n"
                                       : ""},
               {"place", place(tiling)},
               {"order", tiling.exchanged_k > 0 ? "[tap][c][k] with taps from last to first" : "[tap][k][c]"},
               {"loads", std::to_string(std::max(1, kLoads / tiling.split_k))},
               {"bias_gradient", bias_gradient(kernel.problem, tiling)}};
  return fill(kernel, name, "reduce/filters.cu.in", std::move(own));
}

}  // namespace jitconv::codegen
