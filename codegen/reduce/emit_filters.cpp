// Prints templates/reduce/filters.cu.in: the reduce pass behind a weight gradient whose sums have taps outermost.
#include <algorithm>
#include <string>
#include <utility>

#include "codegen/reduce/pass.h"
#include "codegen/text/layout_comment.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

constexpr int kLoads = 8;  // of a thread, on their way at the same time

bool is_exchanged(const ReduceTiling& tiling) { return tiling.sums.order == GradientSums::Order::tap_c_k; }

/// Whether a filter's place depends on its channels, and not only on its number.
bool needs_channels(const ReduceTiling& tiling) { return is_exchanged(tiling) || tiling.sums.joined_groups > 1; }

std::string constants(const Problem& problem, const ReduceTiling& tiling) {
  Constants c;
  c.group("dw, and the partial sums of each of its elements");
  c.add("kThreads", ReduceTiling::kThreads).add("kOutputs", problem.output_elements());
  c.add("kTaps", problem.taps()).add("kFilters", tiling.filters(problem), "of one input channel each");
  c.add("kBlockFilters", tiling.block_filters);
  if (needs_channels(tiling)) {
    c.add("kChannels", problem.c, "of a group").add("kGroupK", tiling.group_k);
    c.add("kOutputChannels", tiling.filters(problem) / problem.c);
    if (tiling.sums.joined_groups > 1) c.add("kJoinedGroups", tiling.sums.joined_groups);
  }
  if (tiling.bias_sums > 0)
    c.add("kFilterBlocks", tiling.filter_blocks(problem))
        .add("kBiasFirst", tiling.sums.bias_first, "floats before the sums of db")
        .add("kBiasSums", tiling.bias_sums);
  c.add("kSplits", tiling.split_k).add("kPartialSumStride", tiling.sums.stride, "floats from a split to the next");
  return c.text();
}

/// Where the sums of a filter's tap are.
std::string place(const ReduceTiling& tiling) {
  if (is_exchanged(tiling))
    return "(((kTaps - 1 - tap) * (kOutputChannels / kGroupK) + k / kGroupK) * static_cast<long long>(kChannels) + "
           "c) * kGroupK + k % kGroupK";
  if (tiling.sums.joined_groups > 1)
    return "((tap * static_cast<long long>(kOutputChannels) + k) * kJoinedGroups + k / kGroupK % kJoinedGroups) * "
           "kChannels + c";
  return "tap * static_cast<long long>(kFilters) + first_filter + filter";
}

std::string_view order(const ReduceTiling& tiling) {
  if (is_exchanged(tiling)) return "[tap][c][k] with taps from last to first";
  if (tiling.sums.joined_groups > 1) return "[tap][k][group of the joined][c], of which k has one";
  return "[tap][k][c]";
}

/// The blocks behind those of dw add db.
std::string bias_gradient_blocks(const Problem& problem, const ReduceTiling& tiling) {
  if (tiling.bias_sums == 0) return {};
  return fmt::format(
      "if (blockIdx.x >= kFilterBlocks) {{\n"
      "  const int k = static_cast<int>(blockIdx.x - kFilterBlocks) * kThreads + static_cast<int>(threadIdx.x);\n"
      "  if (k < kBiasSums) db[k] = {};\n"
      "  return;\n"
      "}}\n",
      stores_floats(problem) ? "add_splits(kBiasFirst + k)" : "from_float(add_splits(kBiasFirst + k))");
}

}  // namespace

KernelText reduce::emit_filters(const KernelPlan& kernel, std::string_view name) {
  const auto& tiling = std::get<ReduceTiling>(kernel.tiling);
  Holes own = {{"constants", constants(kernel.problem, tiling)},
               {"layout", LayoutComment("float").memory("0", "sums of kBlockFilters filters, kTaps of each").text()},
               {"filter_channels", needs_channels(tiling)
                                       ? "const int k = static_cast<int>((first_filter + filter) / kChannels);\n"
                                         "const int c = static_cast<int>((first_filter + filter) % kChannels);\n"
                                       : ""},
               {"place", place(tiling)},
               {"order", std::string(order(tiling))},
               {"loads", std::to_string(std::max(1, kLoads / tiling.split_k))},
               {"bias_gradient", bias_gradient_blocks(kernel.problem, tiling)}};
  return fill(kernel, name, "reduce/filters.cu.in", std::move(own));
}

}  // namespace jitconv::codegen
