// Convolutions whose patches a kernel before them gathers: what gather_patches makes of x, and that weights are packed,
// or taken, as those of a 1x1 filter.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "host/quick/quick.h"

namespace jitconv::test {
namespace {

std::string patches_kind(const codegen::ConvPlan& plan) {
  const auto* const tiling = plan.tiling<codegen::WgmmaTiling>();
  if (tiling == nullptr || !tiling->gathers_patches()) return {};
  const codegen::KernelPlan& pass = plan.kernels[tiling->packs_weights() ? 1 : 0];
  const auto& gathering = std::get<codegen::GatherPatchesTiling>(pass.tiling);
  return fmt::format("{} at a time, {}{}{}", gathering.load_elements(),
                     tiling->keeps_weights()   ? "resident"
                     : tiling->packs_weights() ? "packed"
                                               : "unpacked",
                     tiling->tile.images > 0 ? ", images" : "", tiling->split_k > 1 ? ", split-K" : "");
}

TEST(Patches, AreRight) {
  run("patches",
      Kinds{.kind = patches_kind,
            .others = 3,
            .parts = {"1 at a time", "2 at a time", "4 at a time", "8 at a time", "resident", "packed", "unpacked",
                      "images", "split-K"},
            .specs = {
                // Filter rows of whole vectors, of halves, and of pairs; the last slice ends behind the patch.
                "input=2,3,32,48 weight=72,3,16,16 stride=16 bias dtype=bf16",
                "input=2,3,16,24 weight=72,3,4,4 stride=4 bias residual dtype=f16",
                "input=3,3,28,28 weight=40,3,14,14 stride=14 bias activation=relu dtype=bf16",
                "input=2,3,16,24 weight=140,3,4,4 stride=4 bias math=tf32",
                "input=2,5,18,20 weight=24,5,6,2 stride=5,2 padding=2,2,2,0 math=tf32",
                "input=2,3,24,24 weight=40,3,8,8 stride=8 bias",
                // Pixels that are met by several outputs, by none, and padding on all sides.
                "input=2,3,19,23 weight=40,3,3,3 stride=3,2 padding=1 bias math=tf32",
                "input=2,4,17,26 weight=40,4,3,5 stride=4,5 padding=1,2 dilation=2,3 dtype=bf16",
                "input=2,9,13,14 weight=40,9,2,2 stride=2,3 padding=0,3,1,0 output_layout=nhwc math=tf32",
                // NHWC, whose elements are apart.
                "input=2,3,16,24 weight=72,3,4,4 stride=4 bias dtype=bf16 layout=nhwc",
                "input=2,3,17,17 weight=72,3,5,5 stride=5,4 padding=2 residual math=tf32 layout=nhwc",
                "input=2,6,12,12 weight=40,6,4,4 stride=4 bias layout=nhwc",
            }});
}

std::string gradient_kind(const codegen::ConvPlan& plan) {
  const auto* const tiling = plan.tiling<codegen::WgradWgmmaTiling>();
  if (tiling == nullptr || !tiling->gathers_patches) return {};
  constexpr const char* kProducers[] = {"loaded", "gathered", "ordered", "boxes", "planes"};
  return fmt::format("{}{}{}{}", kProducers[static_cast<std::size_t>(tiling->producer)],
                     tiling->packs_x ? ", packed patches" : "", tiling->packs_dy ? ", packed dy" : "",
                     tiling->splits_operands ? ", split operands" : "");
}

TEST(Patches, WeightGradientsAreRight) {
  std::vector<std::string> specs = {
      "input=2,3,32,48 weight=72,3,4,4 stride=4 bias dtype=bf16",
      "input=2,3,32,48 weight=72,3,4,4 stride=4 bias dtype=bf16 layout=nhwc",
      "input=3,3,64,64 weight=40,3,16,16 stride=16 bias math=tf32",
      "input=2,8,20,24 weight=24,8,2,2 stride=2 math=tf32 layout=nhwc",
      "input=2,4,33,50 weight=40,4,4,5 stride=4,5 padding=1,2 bias dtype=f16 output_dtype=f32",
      "input=2,4,28,28 weight=40,4,4,4 stride=4 dtype=bf16 dy_activation=relu alignment=4",
      "input=2,4,32,48 weight=40,4,4,4 stride=4 layout=nhwc",
      // The last 16 bytes of a patch are not full.
      "input=3,3,28,28 weight=72,3,7,7 stride=7 bias dtype=bf16",
      "input=2,3,28,42 weight=40,3,14,14 stride=14 dtype=f16 layout=nhwc output_dtype=f32",
      "input=2,5,18,20 weight=24,5,3,3 stride=3 bias math=tf32",
      "input=2,3,30,30 weight=40,3,5,5 stride=5,4 padding=0,2",
  };
  for (std::string& spec : specs) spec += " operation=weight_gradient";
  run("weight gradients of patches",
      Kinds{.kind = gradient_kind,
            .others = 3,
            .parts = {"loaded", "boxes", "planes", "packed patches", "packed dy", "split operands"},
            .specs = std::move(specs)});
}

}  // namespace
}  // namespace jitconv::test
