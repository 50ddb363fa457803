// Prints templates/reduce/filters.cu.in: the reduce pass behind a weight gradient whose sums lie as [tap][k][c].
#include <algorithm>
#include <string>

#include "codegen/reduce/pass.h"
#include "codegen/text/epilogue.h"
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
  if (tiling.bias_sums > 0) c.add("kBiasSums", tiling.bias_sums, "of db, behind the outputs");
  c.add("kSplits", tiling.split_k).add("kPartialSumStride", tiling.stride, "floats from a split to the next");
  return c.text();
}

/// The blocks behind those of dw add db.
std::string bias_gradient(const Problem& problem, const ReduceTiling& tiling) {
  if (tiling.bias_sums == 0) return {};
  return fmt::format(
      "constexpr int kFilterBlocks = {};\n"
      "if (blockIdx.x >= kFilterBlocks) {{\n"
      "  const int k = static_cast<int>(blockIdx.x - kFilterBlocks) * kThreads + static_cast<int>(threadIdx.x);\n"
      "  if (k < kBiasSums) db[k] = {};\n"
      "  return;\n"
      "}}\n",
      tiling.filter_blocks(problem),
      stores_floats(problem) ? "add_splits(kOutputs + k)" : "from_float(add_splits(kOutputs + k))");
}

}  // namespace

KernelText reduce::emit_filters(const KernelPlan& kernel, std::string_view name) {
  const Problem& problem = kernel.problem;
  const auto& tiling = std::get<ReduceTiling>(kernel.tiling);
  const bool floats = stores_floats(problem);
  KernelText text;
  text.arguments = parameters(kernel, tiling);
  text.files = device_files(kernel, tiling);
  text.text = fill_template(
      embedded_text("reduce/filters.cu.in"),
      {{"constants", constants(problem, tiling)},
       {"kernel", std::string(name)},
       {"parameters", parameter_list(text.arguments)},
       {"wait", wait(kernel)},
       {"unroll", unroll(tiling)},
       {"loads", std::to_string(std::max(1, kLoads / tiling.split_k))},
       {"bias_gradient", bias_gradient(problem, tiling)},
       {"epilogue",
        epilogue_lines(problem.epilogue, {.residual = floats ? "residual[output]" : residual_at("output")})},
       {"stored", floats ? "value" : "from_float(value)"}});
  return text;
}

}  // namespace jitconv::codegen
