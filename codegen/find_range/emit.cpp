// Prints templates/find_range/kernel.cu.in.
#include "codegen/f16_pairs.h"
#include "codegen/find_range/pass.h"
#include "codegen/text/layout_comment.h"

namespace jitconv::codegen {
namespace {

std::string constants(const FindRangeTiling& tiling) {
  Constants c;
  c.group("kBlocks blocks share the tensor, vectors of four floats");
  c.add("kThreads", FindRangeTiling::kThreads).add("kBlocks", kLargestParts);
  c.add("kVectors", tiling.elements / 4).add("kRest", tiling.elements % 4, "elements behind them");
  c.add("kBatch", FindRangeTiling::kBatch, "vectors of a thread in flight");
  c.add("kLargestRow", tiling.range_row, "of 16 bytes");
  std::string text = c.text();
  text.pop_back();
  return text;
}

KernelText emit(const FindRangeTiling& tiling, const KernelPlan& kernel, std::string_view name, std::string_view tensor,
                std::string_view pairs) {
  constexpr const char* kWait = "wait_for_previous_kernel();";
  const bool waits = kernel.starts_early, is_made = is_scratch(tiling.source);
  KernelText text;
  // Not __restrict__: a kernel before may make it.
  text.arguments = {{tiling.source, "const float*", std::string(tensor)},
                    {tiling.region, "uint4*", std::string(pairs)}};
  text.files = {{"device/dependent_launch.cuh"}};
  text.text = fill_template(embedded_text("find_range/kernel.cu.in"),
                            {{"constants", constants(tiling)},
                             {"layout", LayoutComment("word").memory("0", "the largest magnitude of each warp").text()},
                             {"kernel", std::string(name)},
                             {"parameters", parameter_list(text.arguments)},
                             {"tensor", std::string(tensor)},
                             {"pairs", std::string(pairs)},
                             {"await_source", waits && is_made ? kWait : ""},
                             {"await_previous", waits && !is_made ? kWait : ""}});
  return text;
}

}  // namespace

KernelText find_range::emit_of_weight(const KernelPlan& kernel, std::string_view name) {
  return emit(std::get<FindWeightRangeTiling>(kernel.tiling), kernel, name, "w", "packed_w");
}

KernelText find_range::emit_of_input(const KernelPlan& kernel, std::string_view name) {
  return emit(std::get<FindInputRangeTiling>(kernel.tiling), kernel, name, "x", "x_range");
}

}  // namespace jitconv::codegen
