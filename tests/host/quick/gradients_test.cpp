// Gradients by every family that computes them; those with a stride and the depthwise ones have tests of their own. The
// pixels of weight gradients are cut in more ways than a small one's candidates have: into strips that several blocks
// share, sums of several strips, and strips of several sums.
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "codegen/plan.h"
#include "host/quick/quick.h"
#include "support/gradient_cases.h"

namespace jitconv::test {
namespace {

using codegen::ConvPlan;
using codegen::WgradDepthwiseTiling;
using codegen::WgradGeometry;
using codegen::WgradTiling;
using codegen::WgradWgmmaTiling;

/// The cheapest plan with a tiling that is `wanted`, if there is one.
template <typename Tiling>
std::optional<ConvPlan> plan_with_tiling(const ConvSpec& spec, const std::function<bool(const Tiling&)>& wanted) {
  for (ConvPlan& plan : codegen::enumerate_plans(spec, kTarget, SIZE_MAX))
    if (const auto* tiling = plan.tiling<Tiling>(); tiling != nullptr && wanted(*tiling)) return std::move(plan);
  return {};
}

/// The plan with another tiling and as many blocks as that has.
template <typename Tiling>
ConvPlan changed(const ConvPlan& plan, const Tiling& tiling, std::int64_t blocks) {
  codegen::Launch launch = plan.convolution().launch;
  launch.blocks = static_cast<std::uint32_t>(blocks);
  return codegen::plan_with(plan.spec, kTarget, {tiling, launch, 0});
}

TEST(Gradients, OfEveryFamily) { run("gradients", gradient_cases(kTarget)); }

/// How the pixels of a weight gradient on tensor cores are cut.
struct Cut {
  const char* what;
  const char* spec;
  int splits, strip_rows, summed_strips, piece_rows;
  std::function<bool(const WgradWgmmaTiling&)> wanted = [](const WgradWgmmaTiling&) { return true; };
};

ConvPlan plan_of(const Cut& cut) {
  const ConvSpec spec = parse_spec(std::string("operation=weight_gradient ") + cut.spec);
  const ConvPlan plan = plan_with_tiling<WgradWgmmaTiling>(spec, cut.wanted).value();
  WgradWgmmaTiling tiling = *plan.tiling<WgradWgmmaTiling>();
  tiling.splits = cut.splits;
  tiling.strip_rows = cut.strip_rows;
  tiling.summed_strips = cut.summed_strips;
  tiling.piece_rows = cut.piece_rows;
  const WgradGeometry geometry(plan.convolution().problem, tiling);
  EXPECT_LE(cut.splits, geometry.strips()) << cut.what;
  EXPECT_TRUE(cut.summed_strips == 1 || cut.piece_rows == cut.strip_rows) << cut.what;
  return changed(plan, tiling, geometry.tiles() * cut.splits);
}

TEST(Gradients, OfWeightsOnTensorCoresCutInManyWays) {
  const auto one_tap_column_in_many = [](const WgradWgmmaTiling& tiling) { return tiling.block_s < 13; };
  const auto copied = [](const WgradWgmmaTiling& tiling) { return tiling.orders(); };
  const auto gathers = [](const WgradWgmmaTiling& tiling) { return tiling.gathers(); };
  const auto few_pixels = [](const WgradWgmmaTiling& tiling) { return tiling.row_pixels == 16; };
  std::vector<Case> cases;
  for (const Cut& cut : std::initializer_list<Cut>{
           {"strips of 5 rows", "input=2,16,17,20 weight=40,16,3,3 padding=1 math=tf32 bias residual", 3, 5, 1, 5},
           {"a strip in pieces", "input=2,16,17,20 weight=40,16,3,3 padding=1 math=tf32 bias", 2, 9, 1, 4},
           {"sums of 2 strips", "input=3,16,17,20 weight=40,16,3,3 padding=1 math=tf32 bias", 2, 4, 2, 4},
           {"parts of rows", "input=2,13,9,40 weight=37,13,3,3 padding=1 math=tf32 bias", 4, 4, 2, 4, few_pixels},
           {"runs, odd rows", "input=2,16,12,23 weight=40,16,3,3 padding=1 math=tf32 bias", 2, 5, 2, 5, copied},
           {"bf16, boxes", "input=2,16,16,16 weight=40,16,3,3 padding=1 dtype=bf16 bias", 2, 5, 1, 3, copied},
           {"f16, runs", "input=2,16,12,22 weight=40,16,3,3 padding=1 dtype=f16 bias", 2, 4, 2, 4, copied},
           {"dilated rows", "input=2,16,19,20 weight=40,16,3,3 padding=2,1 dilation=2,1 math=tf32", 3, 4, 1, 2},
           {"strided", "input=2,16,19,23 weight=80,16,3,3 stride=2 padding=1 math=tf32 bias", 2, 3, 2, 3},
           {"groups, nhwc",
            "input=2,24,13,19 weight=40,12,3,3 groups=2 padding=1 layout=nhwc dtype=f16 output_dtype=f32 bias residual",
            3, 4, 1, 4},
           {"filter columns in blocks", "input=1,64,3,40 weight=16,64,1,13 padding=0,6 math=tf32", 2, 2, 1, 2,
            one_tap_column_in_many},
           {"a tall filter, many barriers", "input=1,5,32,11 weight=34,5,25,1 padding=4,0 math=tf32 bias", 2, 6, 1, 3,
            [](const WgradWgmmaTiling& tiling) { return tiling.x_rows + tiling.stages + tiling.raw_rows > 32; }},
           {"filter rows in blocks", "input=1,70,11,12 weight=70,70,5,5 padding=2 dtype=bf16 bias", 2, 4, 1, 4},
           {"several filter rows in blocks", "input=1,32,13,12 weight=16,32,7,3 padding=3,1 math=tf32", 2, 4, 1, 4,
            [](const WgradWgmmaTiling& tiling) { return tiling.block_r > 1 && tiling.block_r < 7; }},
           {"groups, boxes", "input=2,32,11,20 weight=32,16,3,3 groups=2 padding=1 math=tf32", 2, 4, 1, 4, copied},
           {"few channels, strided", "input=2,3,19,23 weight=40,3,7,7 stride=2 padding=3 math=tf32 bias residual", 2, 4,
            1, 3, gathers},
           {"few channels, further than a row", "input=3,1,23,40 weight=70,1,3,5 stride=4,5 math=tf32 bias", 2, 3, 2, 3,
            gathers},
           {"few channels, dilated", "input=2,4,17,21 weight=40,4,3,5 dilation=2,3 padding=2 math=tf32", 2, 4, 1, 4,
            gathers},
           {"few channels, one filter row at a time",
            "input=2,7,13,18 weight=72,7,3,3 stride=2 dilation=2 padding=1 math=tf32 bias", 2, 3, 1, 3, gathers},
           {"few channels, groups, nhwc",
            "input=2,6,14,35 weight=48,3,5,3 groups=2 padding=2,1 layout=nhwc dtype=bf16 output_dtype=f32 bias", 3, 5,
            1, 2, gathers},
           {"few channels, f16", "input=2,3,15,34 weight=130,3,3,3 stride=1,2 padding=1 dtype=f16 output_dtype=f32", 2,
            4, 1, 4, gathers},
           {"one tap", "input=2,72,9,12 weight=136,72,1,1 math=tf32 bias", 2, 4, 2, 4},
           {"split operands, dilated strips in pieces", "input=2,16,13,20 weight=40,16,3,1 padding=2,0 dilation=2,1", 3,
            4, 1, 2},
       })
    cases.push_back(case_of(cut.what, plan_of(cut)));
  run("weight gradients on tensor cores", cases);
}

TEST(Gradients, OfWeightsByFmaInManyTiles) {
  std::vector<Case> cases;
  for (const char* text :
       {"input=3,10,19,23 weight=14,10,3,3 padding=1 bias residual",
        "input=2,12,19,17 weight=36,6,3,2 groups=2 stride=1,2 padding=1,2 bias",
        "input=2,3,40,41 weight=70,3,7,7 stride=2 padding=3",
        "input=3,12,11,13 weight=36,6,3,2 groups=2 dilation=2,3 padding=1,2 layout=nhwc bias",
        "input=3,12,11,13 weight=10,12,2,3 stride=3,1 padding=3 input_layout=nhwc dtype=bf16 output_dtype=f32 bias",
        "input=2,130,7,9 weight=130,130,1,1 dtype=f16 math=ieee"}) {
    const ConvSpec spec = parse_spec(std::string("operation=weight_gradient ") + text);
    int tiles = 0;
    for (const int block_k : {4, 16, 32, 64, 128}) {
      const std::optional<ConvPlan> plan = plan_with_tiling<WgradTiling>(
          spec, [block_k](const WgradTiling& tiling) { return tiling.block_k == block_k; });
      if (!plan) continue;  // tiles that are too large for these channels are no candidates
      // Splits of which the last has fewer pixels, and no whole number of chunks.
      WgradTiling tiling = *plan->tiling<WgradTiling>();
      tiling.split_pixels = 5 * tiling.chunk_pixels;
      const codegen::Problem& problem = plan->convolution().problem;
      cases.push_back(case_of(text, changed(*plan, tiling, tiling.tiles(problem) * tiling.splits(problem))));
      ++tiles;
    }
    EXPECT_GE(tiles, 1) << text;
  }
  EXPECT_GE(cases.size(), 10u);
  run("weight gradients by FMA", cases);
}

// Blocks of several strips, one after the other.
TEST(Gradients, OfDepthwiseWeightsInStripsOfManyTurns) {
  std::vector<Case> cases;
  for (const char* text :
       {"input=3,2,23,20 weight=2,1,3,3 groups=2 padding=1 bias",
        "input=3,2,25,17 weight=2,1,5,3 groups=2 dilation=2,1",
        "input=3,6,23,19 weight=6,1,4,3 groups=6 stride=2,1 padding=1 layout=nhwc bias",
        // Filter rows in tiles of which the last is not full, and sums that end where the next share's begin.
        "input=3,2,12,70 weight=2,1,5,32 groups=2 padding=2,16"}) {
    const ConvSpec spec = parse_spec(std::string("operation=weight_gradient ") + text);
    const ConvPlan plan =
        plan_with_tiling<WgradDepthwiseTiling>(spec, [](const WgradDepthwiseTiling&) { return true; }).value();
    const codegen::Problem& problem = plan.convolution().problem;
    WgradDepthwiseTiling tiling = *plan.tiling<WgradDepthwiseTiling>();
    tiling.slots = 1;
    tiling.turns = 3;
    for (const int strip_rows : {4, 5, 6}) {
      tiling.strip_rows = strip_rows;
      const std::int64_t blocks = tiling.tiles_k(problem) * tiling.tiles_r(problem) * tiling.splits(problem);
      const codegen::Launch launch = {static_cast<std::uint32_t>(blocks), static_cast<std::uint32_t>(tiling.threads()),
                                      static_cast<std::uint32_t>(tiling.shared_bytes(problem))};
      EXPECT_GT(tiling.splits(problem), 1) << text;
      cases.push_back(case_of(text, codegen::plan_with(plan.spec, kTarget, {tiling, launch, 0})));
    }
  }
  run("depthwise weight gradients", cases);
}

}  // namespace
}  // namespace jitconv::test
