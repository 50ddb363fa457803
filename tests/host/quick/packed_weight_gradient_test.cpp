// Weight gradients by plans of the wgrad_wgmma family whose tensors a kernel before packs: as planes of floats, for
// NHWC tensors, rows that are no whole vectors, and strides, whose phases of columns are kept apart; and rows of all
// images as one, of any type.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "host/quick/quick.h"

namespace jitconv::test {
namespace {

using codegen::WgradWgmmaTiling;

std::string packed_runs_kind(const codegen::ConvPlan& plan) {
  const auto* const tiling = plan.tiling<WgradWgmmaTiling>();
  if (tiling == nullptr || !tiling->packs() || !(tiling->orders() || tiling->joins_rows)) return {};
  const codegen::WgradGeometry geometry(plan.convolution().problem, *tiling);
  return fmt::format("{}{} phases, {}{}{}", tiling->joins_rows ? "rows joined, " : "", geometry.phases(),
                     tiling->packs_x ? (tiling->packs_dy ? "both packed" : "x packed") : "dy packed",
                     tiling->block_r > 1 ? ", several filter rows" : "",
                     tiling->splits_operands ? ", split operands" : "");
}

TEST(PackedWeightGradient, IsRight) {
  std::vector<std::string> specs = {
      // As they lie, but for the layout or the ends of rows and planes.
      "input=2,24,9,12 weight=40,24,3,3 padding=1 bias math=tf32 layout=nhwc",
      "input=2,24,9,11 weight=40,24,3,3 padding=1 bias residual math=tf32",
      "input=2,33,7,7 weight=72,33,3,5 padding=1,2 math=tf32 output_layout=nhwc",
      "input=2,24,8,12 weight=40,24,2,4 bias math=tf32",
      "input=2,40,10,13 weight=40,40,3,2 dilation=2,3 math=tf32 input_layout=nhwc",
      // Phases, of which one may be shorter, or meet no tap.
      "input=2,24,14,16 weight=40,24,3,3 stride=2 padding=1 bias math=tf32",
      "input=2,24,13,15 weight=80,24,5,5 stride=2 padding=1 bias math=tf32 layout=nhwc",
      "input=2,16,9,23 weight=24,16,2,4 stride=1,3 padding=0,1 math=tf32",
      "input=2,16,11,26 weight=24,16,3,3 stride=2,4 dilation=1,2 padding=1,3 bias math=tf32",
      "input=2,48,12,14 weight=64,12,3,3 groups=4 stride=2 padding=1 bias math=tf32",
      "input=2,64,12,14 weight=32,64,3,3 stride=2 padding=2,1,0,1 math=tf32 dy_activation=relu",
      "input=3,24,14,16 weight=40,24,3,3 stride=2 padding=1 bias",
      "input=2,24,15,13 weight=40,24,3,2 stride=2,1 padding=1 bias layout=nhwc",
      // Rows of all images: a filter that reaches further behind than before, and no padding.
      "input=5,32,7,7 weight=40,32,3,3 padding=1 bias math=tf32",
      "input=5,32,8,8 weight=72,32,4,4 stride=2 padding=1 bias math=tf32 layout=nhwc",
      "input=7,24,5,6 weight=40,24,2,3 padding=0,0,1,3 math=tf32",
      "input=4,24,9,9 weight=40,24,3,2 stride=2,3 dilation=1,2 padding=1,0 bias math=tf32",
      "input=9,24,6,5 weight=24,24,3,3 math=tf32",
      "input=6,40,7,7 weight=40,40,3,3 padding=1 bias",
      "input=5,32,7,7 weight=40,32,3,3 padding=1 bias dtype=bf16",
      "input=5,32,7,8 weight=72,32,4,4 stride=2 padding=1 bias dtype=f16 layout=nhwc",
      "input=6,24,5,6 weight=40,24,3,3 stride=1,2 padding=1,0,0,2 bias dtype=bf16 output_dtype=f32",
      "input=5,64,7,7 weight=64,8,3,3 groups=8 padding=1 bias dtype=bf16",
      "input=5,40,7,8 weight=8,40,3,3 padding=1 bias math=tf32",
  };
  for (std::string& spec : specs) spec += " operation=weight_gradient";
  run("weight gradients of packed planes",
      Kinds{.kind = packed_runs_kind,
            .others = 2,
            .parts = {"rows joined, 1 phases", "rows joined, 2 phases", "rows joined, 3 phases", "4 phases",
                      "both packed", "x packed", "dy packed", "several filter rows", "split operands"},
            .specs = std::move(specs)});
}

}  // namespace
}  // namespace jitconv::test
