// Weight gradients of 16-bit NHWC tensors by plans of the wgrad_wgmma family whose operands are boxes (MN-major), which
// cut channels, taps and pixels in different ways.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "host/quick/quick.h"

namespace jitconv::test {
namespace {

using codegen::WgradWgmmaTiling;

std::string boxes_kind(const codegen::ConvPlan& plan) {
  const auto* const tiling = plan.tiling<WgradWgmmaTiling>();
  if (tiling == nullptr || !tiling->takes_boxes()) return {};
  const codegen::WgradGeometry geometry(plan.convolution().problem, *tiling);
  return fmt::format("{} consumers' channels, {}, rows of {}, {} parts, {} phases{}{}{}{}{}{}", tiling->consumers_k,
                     tiling->joins_taps ? "joined" : "apart", geometry.row_bytes(), geometry.parts(),
                     geometry.box_phases().size(), geometry.pieces() > 1 ? ", pieces" : "",
                     tiling->block_r > 1 ? ", shared rows" : "", geometry.tiles_s() > 1 ? ", tiles of s" : "",
                     tiling->splits > 1 ? ", splits" : "", tiling->packs_x ? ", packed x" : "",
                     tiling->packs_dy ? ", packed dy" : "");
}

TEST(NhwcWeightGradient, IsRight) {
  std::vector<std::string> specs = {
      "input=2,64,9,20 weight=128,64,3,3 padding=1 bias dtype=bf16",
      "input=1,16,11,40 weight=64,16,3,3 padding=1 bias dtype=f16",
      "input=2,32,14,33 weight=64,32,5,9 padding=2,4 dilation=2,3 bias dtype=bf16",
      "input=1,64,12,18 weight=128,64,5,7 bias dtype=bf16",
      // A strip of more rows than the ring of rows of x has.
      "input=1,64,64,16 weight=64,64,3,3 padding=1 dtype=bf16",
      // Channels that fill neither a row nor a tile.
      "input=2,24,7,7 weight=40,24,3,3 padding=1 dtype=bf16",
      "input=2,8,7,9 weight=72,8,3,2 bias dtype=f16",
      // Phases of the columns.
      "input=2,64,10,20 weight=64,64,3,3 padding=1 stride=2 bias dtype=bf16",
      "input=2,128,10,20 weight=128,128,3,3 padding=1 stride=2,4 dilation=1,3 bias dtype=bf16",
      "input=3,128,6,16 weight=200,128,1,1 bias dtype=f16",
      "input=3,256,6,16 weight=128,256,1,1 stride=2 dtype=bf16",
      "input=2,64,8,20 weight=64,32,3,3 padding=1 groups=2 bias dtype=bf16",
      // A row of x that reaches further than a box, but for few pixels of dy.
      "input=1,16,4,250 weight=64,16,1,2 padding=0,60 dilation=1,190 dtype=bf16",
      "input=1,72,1,300 weight=64,72,1,5 padding=0,2 bias dtype=bf16",
      "input=1,16,90,140 weight=64,16,3,1 padding=1,0 bias output_dtype=f32 dtype=bf16",
      "input=2,48,9,50 weight=64,48,3,3 padding=0,2,1,0 output_dtype=f32 dtype=bf16",
  };
  for (std::string& spec : specs) spec += " layout=nhwc operation=weight_gradient";
  // Packed before: NCHW tensors, and rows of no whole strides.
  for (const char* const spec :
       {"input=2,64,9,21 weight=64,64,3,3 padding=1 stride=2 bias dtype=bf16",
        "input=2,48,11,19 weight=80,24,3,3 padding=1 groups=2 bias dtype=f16 output_dtype=f32",
        "input=2,64,9,21 weight=64,32,3,3 stride=2 groups=2 bias dtype=bf16 layout=nhwc",
        "input=2,64,9,13 weight=64,64,2,2 stride=3 dtype=f16 dy_activation=relu input_layout=nhwc output_layout=nchw"})
    specs.push_back(std::string(spec) + " operation=weight_gradient");
  run("weight gradients of NHWC tensors",
      Kinds{.kind = boxes_kind,
            .others = 2,
            .parts = {"1 consumers", "2 consumers", "joined", "apart", "rows of 32", "rows of 64", "rows of 128",
                      "2 parts", "2 phases", "shared rows", "tiles of s", "splits", "packed x", "packed dy"},
            .specs = std::move(specs)});
}

}  // namespace
}  // namespace jitconv::test
