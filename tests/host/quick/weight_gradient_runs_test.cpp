// Weight gradients by plans of the wgrad_wgmma family whose operands are runs of NCHW planes as they lie, where planes
// start at different places within 16 bytes: channels of a period have a box each, and rows of an odd number of 16-bit
// pixels have pairs that lie in two words. Planes that a kernel before packs are in packed_weight_gradient_test.cpp.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "host/quick/quick.h"

namespace jitconv::test {
namespace {

using codegen::WgradWgmmaTiling;

std::string period_kind(const codegen::ConvPlan& plan) {
  const auto* const tiling = plan.tiling<WgradWgmmaTiling>();
  if (tiling == nullptr || !tiling->orders()) return {};
  const codegen::WgradGeometry geometry(plan.convolution().problem, *tiling);
  if (geometry.x_period() * geometry.dy_period() == 1) return {};
  return fmt::format("x {}, dy {}, {}{}{}{}", geometry.x_period(), geometry.dy_period(),
                     tiling->consumers_k == 2 ? "shared taps" : "taps dealt out",
                     geometry.cuts_pairs() ? ", pairs cut" : "",
                     geometry.strips_of_row() > 1 ? ", several steps in a row" : "",
                     tiling->splits_operands ? ", split operands" : "");
}

TEST(WeightGradientRuns, OfPlanesThatStartAtDifferentPlaces) {
  std::vector<std::string> specs = {
      // Of 16 bits, dy's planes alone, x's alone, and both.
      "input=2,16,8,16 weight=72,16,3,3 dtype=bf16 bias",
      "input=2,24,6,22 weight=40,24,3,3 padding=1,0 dtype=bf16 bias",
      "input=2,16,7,14 weight=72,16,3,3 padding=1 dtype=f16",
      // Odd rows, whose end cuts a pair, and not.
      "input=1,64,9,15 weight=72,64,3,3 padding=1 dtype=bf16 bias",
      "input=2,32,5,31 weight=64,32,2,2 padding=1,0 dtype=f16 bias",
      "input=1,16,3,147 weight=72,16,3,3 padding=1 dtype=bf16 bias",
      // Floats.
      "input=2,24,9,15 weight=72,24,3,3 padding=1 math=tf32 bias",
      "input=2,24,9,15 weight=40,24,3,3 padding=1 bias",
      // Groups, of which one ends inside a tile; a stride of rows; few output channels.
      "input=2,48,9,15 weight=80,24,3,3 groups=2 padding=1 math=tf32 bias",
      "input=2,16,11,15 weight=72,16,3,3 stride=2,1 padding=1 math=tf32",
      "input=2,64,9,13 weight=8,64,3,3 padding=1 math=tf32 bias",
      // A dilation so far that a run of half the length is all that fits a box.
      "input=1,64,3,255 weight=64,64,1,3 dilation=1,64 padding=0,64 dtype=bf16",
  };
  for (std::string& spec : specs) spec += " operation=weight_gradient";
  run("weight gradients of planes that start at different places",
      Kinds{.kind = period_kind,
            .others = 1,
            .parts = {"x 1,", "x 2", "x 4", "x 8", "dy 1,", "dy 2", "dy 4", "dy 8", "shared taps", "taps dealt out",
                      "pairs cut", "several steps in a row", "split operands"},
            .specs = std::move(specs)});
}

}  // namespace
}  // namespace jitconv::test
