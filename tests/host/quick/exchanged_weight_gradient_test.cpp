// Weight gradients of few output channels, by plans of the wgrad_wgmma family that exchange x and dy, with the pass
// that sums dy for db then, or that join groups.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "host/quick/quick.h"

namespace jitconv::test {
namespace {

using codegen::WgradWgmmaTiling;
using Producer = WgradWgmmaTiling::Producer;

std::string_view name_of(Producer producer) {
  switch (producer) {
    case Producer::loads:
      return "loads";
    case Producer::gathers:
      return "gathers";
    case Producer::orders:
      return "orders";
    case Producer::boxes:
      return "boxes";
    case Producer::planes:
      return "planes";
  }
  return {};
}

std::string exchanged_kind(const codegen::ConvPlan& plan) {
  const auto* const tiling = plan.tiling<WgradWgmmaTiling>();
  if (tiling == nullptr || (!tiling->exchanges && tiling->joins_groups == 1)) return {};
  return fmt::format("{}, {}{}{}{}", tiling->exchanges ? "exchanged" : "joined", name_of(tiling->producer),
                     tiling->packs_x    ? (tiling->packs_dy ? ", both packed" : ", x packed")
                     : tiling->packs_dy ? ", dy packed"
                                        : "",
                     tiling->splits > 1 ? ", splits" : "", tiling->splits_operands ? ", split operands" : "");
}

TEST(ExchangedWeightGradient, IsRight) {
  std::vector<std::string> specs = {
      // One to three output channels: their taps are columns.
      "input=2,40,12,13 weight=1,40,7,7 bias math=tf32",
      "input=2,33,9,14 weight=3,33,3,5 padding=1,2 bias residual math=tf32",
      "input=2,40,9,14 weight=3,40,3,3 padding=1 bias math=tf32 layout=nhwc",
      "input=2,40,9,14 weight=2,40,3,3 padding=2,0,0,1 dilation=2,1 bias dtype=bf16",
      "input=2,36,9,12 weight=5,36,3,3 bias",
      // More of them: channels of boxes and runs.
      "input=2,40,9,16 weight=12,40,3,3 padding=1 bias math=tf32",
      "input=2,40,9,12 weight=9,40,2,3 padding=0,1 dilation=3,2 bias math=tf32 input_layout=nhwc",
      "input=2,40,9,16 weight=8,40,3,3 padding=1 bias dtype=f16 layout=nhwc",
      "input=2,40,9,13 weight=8,40,3,3 padding=1 bias dtype=bf16 output_dtype=f32",
      "input=3,96,8,9 weight=24,32,3,3 groups=3 padding=1 bias residual math=tf32",
      "input=2,40,9,12 weight=12,40,3,3 bias",
      "input=2,24,9,8 weight=10,24,3,3 padding=1 bias math=tf32 dy_activation=relu",
      // Matrix products.
      "input=3,40,6,10 weight=12,40,1,1 bias math=tf32",
      "input=3,44,7,7 weight=3,44,1,1 bias math=tf32",
      "input=3,40,7,9 weight=5,40,1,1 bias dtype=bf16 layout=nhwc",
      "input=3,40,6,12 weight=9,40,1,1 bias dtype=bf16 input_layout=nhwc",
      "input=2,40,6,11 weight=5,40,1,3 padding=0,1 bias dtype=f16",
      // Vectors of 16-bit channels of dy that are copied without waiting: 16, 4 and no bytes.
      "input=3,40,7,9 weight=12,40,1,1 bias dtype=bf16 layout=nhwc",
      "input=2,42,7,9 weight=12,42,1,1 bias dtype=f16 layout=nhwc",
      "input=2,43,9,7 weight=3,43,3,3 padding=1 dtype=f16 layout=nhwc",
      "input=2,96,6,8 weight=16,48,1,1 groups=2 bias dtype=f16 dy_activation=relu",
  };
  for (std::string& spec : specs) spec += " operation=weight_gradient";
  run("weight gradients of exchanged operands",
      Kinds{.kind = exchanged_kind,
            .others = 2,
            .parts = {"loads", "gathers", "orders", "boxes", "planes", "x packed", "dy packed", "both packed", "splits",
                      "split operands"},
            .specs = std::move(specs)});
}

TEST(JoinedWeightGradient, IsRight) {
  std::vector<std::string> specs = {
      "input=2,32,9,12 weight=32,4,3,3 padding=1 groups=8 bias residual math=tf32",
      "input=2,32,9,13 weight=64,4,3,2 stride=2,1 padding=1,0 groups=8 bias math=tf32",
      "input=2,24,9,12 weight=60,2,3,3 dilation=2 padding=2 groups=12 bias math=tf32 layout=nhwc",
      "input=2,96,9,12 weight=96,8,3,3 padding=1 groups=12 bias",
      "input=2,48,9,16 weight=16,12,3,3 stride=2 groups=4 bias dtype=f16",
      "input=2,64,9,12 weight=64,8,3,3 padding=1 groups=8 bias dtype=bf16 layout=nhwc output_dtype=f32",
      "input=2,64,8,12 weight=64,4,3,3 stride=2 padding=1 groups=16 dtype=bf16 layout=nhwc",
      "input=2,32,7,8 weight=32,4,1,1 groups=8 bias math=tf32",
      "input=2,32,7,7 weight=32,4,1,1 stride=2 groups=8 bias dtype=bf16 dy_activation=relu",
  };
  for (std::string& spec : specs) spec += " operation=weight_gradient";
  run("weight gradients of joined groups", Kinds{.kind = exchanged_kind,
                                                 .others = 2,
                                                 .parts = {"joined, loads", "joined, orders", "joined, boxes",
                                                           "joined, planes", "packed", "splits", "split operands"},
                                                 .specs = std::move(specs)});
}

}  // namespace
}  // namespace jitconv::test
