// Prints templates/transpose_weights/kernel.cu.in.
#include "codegen/arithmetic.h"
#include "codegen/text/phases_text.h"
#include "codegen/transpose_weights/pass.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

std::string constants(const Problem& problem) {
  const View& w = problem.weight;
  Constants c;
  c.group("Dense weights [groups][K][C][R][S], and the strides of the same elements in w");
  c.add("kThreads", TransposeWeightsTiling::kThreads).add("kElements", problem.weight_elements());
  c.add("kGroupK", problem.k).add("kChannels", problem.c, "of a group");
  c.add("kR", problem.rows.taps).add("kS", problem.columns.taps);
  if (!problem.is_sub_pixel()) c.add("kFirst", w.first);
  c.add("kStrideGroup", w.group).add("kStrideK", w.stride.n).add("kStrideC", w.stride.c);
  if (problem.is_sub_pixel())
    add_filter_constants(c, problem);
  else
    c.add("kStrideR", w.stride.h).add("kStrideS", w.stride.w);
  return c.text();
}

/// The element of w, of channel k of group `group` and tap (r, s).
std::string element(const Problem& problem) {
  if (problem.is_sub_pixel())
    return fmt::format(
        "const int tap = {};\n"
        "const long long source = group * kStrideGroup + {} * static_cast<long long>(kStrideK) +\n"
        "                         c * static_cast<long long>(kStrideC) + tap;\n"
        "dense_w[element] = tap < 0 ? from_float(0.0f) : w[source];\n",
        filter_tap(problem.phases, "k", "r * kS + s"), channel_of_phase(problem.phases, "k"));
  return "dense_w[element] = w[kFirst + group * kStrideGroup + static_cast<long long>(k) * kStrideK +\n"
         "                     static_cast<long long>(c) * kStrideC + r * kStrideR + s * kStrideS];\n";
}

/// Of a filter of one tap.
std::string tile_constants(const Problem& problem) {
  constexpr std::int64_t kTileK = TransposeWeightsTiling::kTileK, kTileC = TransposeWeightsTiling::kTileC;
  Constants c;
  c.group("Dense weights [groups][K][C], and the strides of the same elements in w, where K are neighbours");
  c.add("kThreads", TransposeWeightsTiling::kThreads).add("kSide", TransposeWeightsTiling::kSide);
  c.add("kGroupK", problem.k).add("kChannels", problem.c, "of a group");
  c.add("kTilesK", ceil_div(problem.k, kTileK)).add("kTilesC", ceil_div(problem.c, kTileC));
  c.add("kFirst", problem.weight.first);
  c.add("kStrideGroup", problem.weight.group).add("kStrideC", problem.weight.stride.c);
  return c.text();
}

}  // namespace

KernelText transpose_weights::emit(const KernelPlan& kernel, std::string_view name) {
  const auto& tiling = std::get<TransposeWeightsTiling>(kernel.tiling);
  const Problem& problem = kernel.problem;
  KernelText text;
  text.arguments = {{problem.weight.tensor, "const Element* __restrict__", "w"},
                    {tiling.dense, "Element* __restrict__", "dense_w"}};
  text.files = {{element_header(problem.weight.type)}};
  if (tiling.lets_next_start) text.files.push_back({"device/dependent_launch.cuh"});
  Holes holes = {{"kernel", std::string(name)},
                 {"parameters", parameter_list(text.arguments)},
                 {"let_next_start", tiling.lets_next_start ? "let_next_kernel_start();" : ""}};
  if (TransposeWeightsTiling::takes_tiles(problem)) {
    holes.emplace("constants", tile_constants(problem));
    text.text = fill_template(embedded_text("transpose_weights/tile.cu.in"), holes);
    return text;
  }
  holes.emplace("constants", constants(problem) + (problem.is_sub_pixel() ? "\n" + filter_tap_function(problem) : ""));
  holes.emplace("element", element(problem));
  text.text = fill_template(embedded_text("transpose_weights/kernel.cu.in"), holes);
  return text;
}

}  // namespace jitconv::codegen
