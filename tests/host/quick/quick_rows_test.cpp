// Small kernels of the wgmma_rows family, see quick_test.cpp: filter rows, folded columns, weights that stay or
// come, rows amid sectors, tiles whose rows do not come out even among consumers, every epilogue.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>

#include "codegen/wgmma_rows/tiling.h"
#include "host/quick/quick.h"

namespace jitconv::test {
namespace {

using codegen::WgmmaRowsTiling;

Wanted rows(std::function<bool(const WgmmaRowsTiling&)> wanted = [](const WgmmaRowsTiling&) { return true; }) {
  return [wanted = std::move(wanted)](const codegen::ConvPlan& plan) {
    const auto* tiling = plan.tiling<WgmmaRowsTiling>();
    return tiling != nullptr && wanted(*tiling);
  };
}

Wanted folded_rows(int columns) {
  return rows([columns](const WgmmaRowsTiling& tiling) { return tiling.folded_columns == columns; });
}

TEST(Quick, RowsOfTilesAndConsumers) {
  const Wanted stay = rows([](const WgmmaRowsTiling& tiling) { return tiling.keeps_weights; });
  const Wanted come = rows([](const WgmmaRowsTiling& tiling) { return !tiling.keeps_weights; });
  run("wgmma_rows, tiles",
      {
          {"whole sectors, a block of several tiles", "input=2,20,34,144 weight=16,20,3,3 padding=1 math=tf32", 3,
           rows(), "sm_90a", 2},
          {"rows amid sectors", "input=2,20,20,133 weight=16,20,3,3 padding=1,2,2,0 math=tf32", 3, rows(), "sm_90a", 3},
          {"weights come", "input=1,36,17,90 weight=40,36,3,3 padding=1 math=tf32", 2, come, "sm_90a", 1},
          {"weights stay", "input=1,36,17,90 weight=40,36,3,3 padding=1 math=tf32", 2, stay, "sm_90a", 1},
          {"two filter rows", "input=2,16,19,70 weight=24,16,2,3 padding=1 math=tf32", 2, rows(), "sm_90a", 2},
          {"four filter rows", "input=2,16,19,70 weight=24,16,4,3 padding=1 math=tf32", 2, rows(), "sm_90a", 2},
          {"dilated", "input=1,16,31,80 weight=24,16,3,3 padding=4,3 dilation=4,3 math=tf32", 2, rows(), "sm_90a", 2},
          {"tiles of a residue", "input=1,12,49,50 weight=9,12,3,3 padding=2,1 dilation=2,1 math=tf32", 2,
           rows([](const WgmmaRowsTiling& tiling) { return tiling.tile_rows < 20; }), "sm_90a", 2},
          {"fewer rows than the dilation", "input=1,12,12,50 weight=9,12,3,2 dilation=5,1 math=tf32", 2, rows()},
          {"rows of padding alone", "input=1,12,2,60 weight=9,12,3,3 padding=4,3,5,6 math=tf32", 2, rows(), "sm_90a",
           1},
          {"one row", "input=2,12,1,150 weight=9,12,3,3 padding=1 math=tf32", 2, rows(), "sm_90a", 1},
          {"one column", "input=2,20,30,9 weight=64,20,3,1 math=tf32", 2, folded_rows(1), "sm_90a", 1},
          {"whole sectors of more channels", "input=2,20,20,144 weight=37,20,3,3 padding=1 math=tf32", 3,
           folded_rows(1), "sm_90a", 3},
          {"more chunks than producer warps", "input=1,44,11,72 weight=40,44,3,3 padding=1 math=tf32", 3,
           folded_rows(1), "sm_90a", 1},
          {"several batches of loads", "input=1,36,11,200 weight=24,36,4,3 padding=1 math=tf32", 1,
           rows([](const WgmmaRowsTiling& tiling) { return 32 * tiling.load_batch < tiling.columns; }), "sm_90a", 1},
      });
}

TEST(Quick, RowsOfFoldedColumns) {
  run("wgmma_rows, folded columns and epilogues",
      {
          {"none", "input=2,20,11,75 weight=37,20,3,3 padding=1 bias residual activation=relu math=tf32", 2,
           folded_rows(1)},
          {"two, and one is left", "input=2,20,11,75 weight=30,20,3,3 padding=1 bias math=tf32", 2, folded_rows(2)},
          {"four of three", "input=2,20,11,75 weight=16,20,3,3 padding=1 bias activation=gelu_erf math=tf32", 2,
           folded_rows(4)},
          {"four, dilated", "input=1,20,9,101 weight=13,20,2,7 padding=1,6 dilation=1,2 residual math=tf32", 2,
           folded_rows(4)},
          {"eight of five", "input=1,20,9,101 weight=3,20,4,5 padding=2 bias activation=silu math=tf32", 2,
           folded_rows(8)},
          {"whole sectors", "input=2,20,11,80 weight=37,20,3,3 padding=1 bias residual activation=gelu_erf math=tf32",
           2, folded_rows(1)},
          {"whole sectors, relu", "input=2,20,11,80 weight=64,20,3,3 padding=1 bias activation=relu math=tf32", 1,
           folded_rows(1)},
          {"f16", "input=2,36,11,75 weight=16,36,3,3 padding=1 bias dtype=f16", 2, rows()},
          {"bf16", "input=2,36,11,80 weight=40,36,3,3 padding=1 bias residual activation=relu dtype=bf16", 2, rows()},
          {"data gradient", "input=2,16,22,75 weight=28,16,3,3 padding=1 operation=data_gradient math=tf32", 2, rows(),
           "sm_90a", 2},
          {"data gradient with a stride",
           "input=1,4,18,83 weight=20,4,4,4 stride=2 padding=1 operation=data_gradient math=tf32", 2, rows()},
      });
}

}  // namespace
}  // namespace jitconv::test
