// Weight gradients of 1x1 filters by plans of the wgrad_wgmma family whose operands are runs of planes (K-major), as
// they lie or packed by a kernel before.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "host/quick/quick.h"

namespace jitconv::test {
namespace {

using codegen::WgradWgmmaTiling;

std::string planes_kind(const codegen::ConvPlan& plan) {
  const auto* const tiling = plan.tiling<WgradWgmmaTiling>();
  if (tiling == nullptr || !tiling->takes_planes()) return {};
  const codegen::WgradGeometry geometry(plan.convolution().problem, *tiling);
  return fmt::format("{}, {} parts, {}{}{}", geometry.takes_dy_as_it_lies() ? "dy as it lies" : "dy in registers",
                     geometry.pixel_parts(),
                     tiling->packs_x    ? (tiling->packs_dy ? "both packed" : "x packed")
                     : tiling->packs_dy ? "dy packed"
                                        : "nothing packed",
                     tiling->splits > 1 ? ", splits" : "", geometry.problem().n > 1 ? ", images apart" : "");
}

TEST(PointwiseWeightGradient, IsRight) {
  std::vector<std::string> specs = {
      "input=3,40,6,10 weight=72,40,1,1 bias math=tf32",
      "input=3,40,6,10 weight=200,40,1,1 math=tf32 residual",
      "input=3,40,7,7 weight=72,40,1,1 bias math=tf32",
      "input=3,40,7,7 weight=72,40,1,1 bias math=tf32 layout=nhwc",
      "input=3,44,9,7 weight=73,44,1,1 stride=2 bias math=tf32",
      "input=3,40,8,6 weight=72,40,1,1 stride=2 bias math=tf32",  // planes of whole vectors, of no whole ones
      "input=3,40,4,12 weight=72,40,1,1 stride=2 bias math=tf32",
      "input=3,44,9,7 weight=72,44,1,1 stride=2 bias math=tf32 layout=nhwc",
      "input=3,44,9,7 weight=73,44,1,1 stride=1,3 bias math=tf32 layout=nhwc",
      "input=2,80,6,8 weight=160,40,1,1 groups=2 bias math=tf32 input_layout=nhwc",
      "input=2,80,6,8 weight=160,40,1,1 groups=2 bias math=tf32 output_layout=nhwc",
      "input=2,32,12,8 weight=99,32,1,1 bias math=tf32 output_layout=nhwc dy_activation=relu",
      "input=3,48,8,10 weight=130,48,1,1 bias dtype=bf16",
      "input=3,44,9,7 weight=73,44,1,1 bias dtype=f16",
      "input=3,44,9,7 weight=73,44,1,1 stride=2 bias dtype=bf16 output_dtype=f32",
      "input=2,80,6,8 weight=160,40,1,1 groups=2 bias dtype=bf16 dy_activation=relu",
      "input=2,300,5,13 weight=64,300,1,1 bias dtype=bf16 layout=nhwc",
  };
  for (std::string& spec : specs) spec += " operation=weight_gradient";
  run("weight gradients of 1x1 filters",
      Kinds{.kind = planes_kind,
            .others = 2,
            .parts = {"dy as it lies", "dy in registers", "1 parts", "2 parts", "both packed", "x packed", "dy packed",
                      "nothing packed", "splits", "images apart"},
            .specs = std::move(specs)});
}

}  // namespace
}  // namespace jitconv::test
