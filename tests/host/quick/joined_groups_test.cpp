// Convolutions and data gradients whose groups are joined, so that one multiplication has output channels of several:
// what pack_weights makes of w, zeros between groups among it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "host/quick/quick.h"

namespace jitconv::test {
namespace {

using codegen::WgmmaTiling;

std::string_view name_of(WgmmaTiling::Pixels pixels) {
  switch (pixels) {
    case WgmmaTiling::Pixels::loaded:
      return "loaded";
    case WgmmaTiling::Pixels::converted:
      return "converted";
    case WgmmaTiling::Pixels::im2col:
      return "im2col";
    case WgmmaTiling::Pixels::aligned:
      return "aligned";
    case WgmmaTiling::Pixels::planes:
      return "planes";
  }
  return {};
}

std::string joined_kind(const codegen::ConvPlan& plan) {
  const auto* const tiling = plan.tiling<WgmmaTiling>();
  if (tiling == nullptr || tiling->joins_groups == 1) return {};
  return fmt::format("{}{}, {}{}{}{}{}", tiling->transposes_input() ? "transposed, " : "",
                     name_of(tiling->producer.pixels), tiling->keeps_weights() ? "resident" : "packed",
                     tiling->pipeline.filter_rows > 1 ? ", all filter rows" : "",
                     tiling->tile.channels == 128 ? ", 128 channels" : "", tiling->split_k > 1 ? ", split-K" : "",
                     tiling->stores_pixels ? ", pixels" : "");
}

TEST(JoinedGroups, AreRight) {
  run("joined groups",
      Kinds{.kind = joined_kind,
            .others = 2,
            .parts = {"loaded", "converted", "im2col", "planes", "resident", "packed", "all filter rows", "split-K"},
            .specs = {
                // 16 groups, one tile, whose weights may stay; and several.
                "input=2,64,9,12 weight=64,4,3,3 groups=16 padding=1 bias math=tf32",
                "input=2,128,9,12 weight=128,8,3,3 groups=16 padding=1 bias residual math=tf32 layout=nhwc",
                // Channels of a group that are no vector, and more or fewer output channels; tiles that end before
                // their last row.
                "input=2,42,9,13 weight=56,6,3,2 groups=7 stride=2,1 padding=1,0 bias math=tf32",
                "input=2,40,9,13 weight=24,10,2,3 groups=4 dilation=2,1 residual dtype=bf16",
                "input=2,72,9,11 weight=108,6,3,3 groups=12 padding=1 dtype=bf16 layout=nhwc",
                // Groups that could be multiplied alone.
                "input=2,128,7,8 weight=128,32,3,3 groups=4 padding=1 bias dtype=f16 layout=nhwc",
                "input=2,64,7,8 weight=64,16,1,1 groups=4 bias dtype=bf16",
                "input=1,256,5,6 weight=256,32,3,3 groups=8 padding=1 math=tf32",
            }});
}

TEST(JoinedGroups, DataGradientsAreRight) {
  std::vector<std::string> specs = {
      "input=2,64,9,12 weight=64,4,3,2 groups=16 padding=1 bias math=tf32",
      "input=2,128,9,12 weight=128,8,3,3 groups=16 padding=1 bias residual math=tf32 layout=nhwc",
      "input=2,56,9,13 weight=42,8,3,3 groups=7 padding=1 dtype=bf16 dy_activation=relu",
      "input=2,24,9,13 weight=40,6,2,3 groups=4 dilation=2,1 dtype=f16 layout=nhwc",
      "input=2,64,8,8 weight=64,8,1,1 groups=8 bias dtype=bf16",
      // Phases: their weights are in different rows, or in neighbouring ones; with zeros behind a lone one.
      "input=2,128,12,14 weight=128,8,3,3 groups=16 stride=2 padding=1 bias math=tf32 layout=nhwc",
      "input=2,64,9,16 weight=64,4,3,3 groups=16 stride=2 padding=1 math=tf32",
      "input=2,96,13,12 weight=48,12,4,3 groups=8 stride=2,1 padding=1 dtype=bf16 layout=nhwc",
      "input=2,48,12,14 weight=96,6,3,3 groups=8 stride=2 padding=1 residual dtype=bf16",
      "input=2,64,10,12 weight=64,8,1,1 groups=8 stride=2 dtype=f16 layout=nhwc",
  };
  for (std::string& spec : specs) spec += " operation=data_gradient";
  run("data gradients of joined groups",
      Kinds{.kind = joined_kind,
            .others = 2,
            .parts = {"loaded", "converted", "im2col", "planes", "transposed", "packed", "128 channels", "pixels"},
            .specs = std::move(specs)});
}

}  // namespace
}  // namespace jitconv::test
