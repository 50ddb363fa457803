// Small kernels of the wgmma family that fold filter columns into rows, see quick_test.cpp: every number of columns,
// filters of fewer and of no whole taps, rows of outputs that end in a run, every loader and epilogue.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>

#include "codegen/wgmma/store.h"
#include "host/quick/quick.h"

namespace jitconv::test {
namespace {

using codegen::WgmmaGeometry;
using codegen::WgmmaTiling;

/// Plans that fold so many columns and whose geometry is `wanted`.
Wanted folded(
    int columns, std::function<bool(const WgmmaGeometry&)> wanted = [](const WgmmaGeometry&) { return true; }) {
  return wgmma([columns, wanted = std::move(wanted)](const WgmmaGeometry& geometry) {
    return geometry.tiling().tile.folded_columns == columns && wanted(geometry);
  });
}

Wanted folded(int columns, std::function<bool(const WgmmaTiling&)> wanted) {
  return folded(columns,
                [wanted = std::move(wanted)](const WgmmaGeometry& geometry) { return wanted(geometry.tiling()); });
}

Wanted row_ends(int columns, std::function<bool(int ends)> wanted) {
  return folded(columns,
                [wanted = std::move(wanted)](const WgmmaGeometry& geometry) { return wanted(geometry.row_ends()); });
}

TEST(Quick, WgmmaFoldedColumns) {
  run("wgmma, folded columns",
      {
          {"two", "input=2,12,9,37 weight=32,12,3,4 padding=1 math=tf32", 3, folded(2)},
          {"two, and one is left", "input=2,12,9,37 weight=30,12,3,3 padding=1 bias math=tf32", 3, folded(2)},
          {"four of three", "input=2,12,9,37 weight=16,12,3,3 padding=1 bias activation=relu math=tf32", 3, folded(4)},
          {"four, and three are left", "input=1,8,7,41 weight=13,8,2,7 dilation=1,2 padding=1,4 math=tf32", 3,
           folded(4)},
          {"four, and one is left", "input=1,8,7,41 weight=16,8,2,5 dilation=2,3 padding=2,6 math=tf32", 3, folded(4)},
          {"eight", "input=1,8,7,60 weight=8,8,2,16 padding=1,7 residual math=tf32", 3, folded(8)},
          {"eight of five", "input=1,20,7,50 weight=3,20,5,5 padding=2 math=tf32", 3, folded(8)},
          {"eight, and three are left", "input=1,8,7,61 weight=5,8,2,11 padding=1,5 bias residual math=tf32", 3,
           folded(8)},
          {"one channel", "input=1,1,9,200 weight=1,1,3,9 padding=1,4 math=tf32", 2, folded(8)},
          {"one slice, no partner", "input=1,3,9,70 weight=12,3,3,3 padding=1 math=tf32", 2, folded(4)},
          {"groups", "input=2,32,9,30 weight=32,16,3,3 groups=2 padding=1 bias math=tf32", 2, folded(4)},
      });
}

TEST(Quick, WgmmaFoldedRows) {
  const auto none = [](int ends) { return ends == 0; };
  const auto one = [](int ends) { return ends == 1; };
  const auto several = [](int ends) { return ends > 1; };
  run("wgmma, folded columns, rows",
      {
          {"no row ends in a run", "input=1,8,5,128 weight=16,8,3,3 padding=1 math=tf32", 3, row_ends(4, none)},
          {"one output row", "input=2,8,3,288 weight=16,8,3,3 padding=0,1 bias math=tf32", 3, row_ends(4, none)},
          {"one row ends", "input=1,8,5,301 weight=16,8,3,3 padding=1 math=tf32", 3, row_ends(4, one)},
          {"one row ends, even", "input=1,8,6,80 weight=32,8,3,3 padding=1,0 math=tf32", 3, row_ends(2, one)},
          {"several rows end", "input=2,8,30,21 weight=16,8,3,3 padding=1 math=tf32", 3, row_ends(4, several)},
          {"several rows end, eight columns", "input=1,8,30,23 weight=7,8,3,7 padding=1,3 dilation=1,2 math=tf32", 3,
           row_ends(8, several)},
          {"a plane of less than a run", "input=3,8,6,9 weight=16,8,3,3 padding=1 bias math=tf32", 2, folded(4)},
          {"planes at odd places", "input=3,8,11,31 weight=15,8,3,3 padding=1 activation=relu math=tf32", 3, folded(4)},
      });
}

TEST(Quick, WgmmaFoldedLoads) {
  const auto loaded = [](const WgmmaTiling& tiling) { return tiling.loads_pixels(); };
  const auto copied = [](const WgmmaTiling& tiling) { return tiling.converts_pixels(); };
  const auto im2col = [](const WgmmaTiling& tiling) { return tiling.uses_im2col(); };
  const auto all_rows = [](const WgmmaTiling& tiling) { return tiling.pipeline.filter_rows > 1; };
  const auto resident = [](const WgmmaTiling& tiling) { return tiling.keeps_weights(); };
  const auto pingpong = [](const WgmmaTiling& tiling) { return tiling.schedule == WgmmaTiling::Schedule::pingpong; };
  run("wgmma, folded columns, loads",
      {
          {"loaded", "input=1,20,9,37 weight=16,20,3,3 padding=1 math=tf32", 2, folded(4, loaded)},
          {"copied", "input=1,20,9,36 weight=16,20,3,3 padding=1 math=tf32", 3, folded(4, copied)},
          {"all filter rows", "input=1,20,9,36 weight=30,20,3,5 padding=1 math=tf32", 3, folded(2, all_rows)},
          {"all filter rows, four", "input=1,20,19,12 weight=14,20,3,7 padding=1,3 math=tf32", 3, folded(4, all_rows)},
          {"nhwc", "input=1,24,9,37 weight=16,24,3,3 padding=1 input_layout=nhwc math=tf32", 3, folded(4, im2col)},
          {"nhwc, loaded", "input=1,24,9,37 weight=6,24,3,5 padding=1 input_layout=nhwc math=tf32", 3,
           folded(8, loaded)},
          {"weights in shared memory", "input=2,20,9,37 weight=16,20,3,3 padding=1 math=tf32", 2, folded(4, resident),
           "sm_90a", 1},
          {"pingpong", "input=3,20,17,20 weight=16,20,3,3 padding=1 bias math=tf32", 3, folded(4, pingpong), "sm_90a",
           2},
          {"f16", "input=2,20,9,37 weight=16,20,3,3 padding=1 bias dtype=f16", 2, folded(4)},
          {"f16, pairs", "input=2,20,9,38 weight=16,20,3,5 padding=1,2 residual dtype=f16", 3, folded(4)},
          {"bf16, pairs", "input=2,20,9,40 weight=27,20,3,3 padding=1 bias residual activation=relu dtype=bf16", 3,
           folded(2)},
          {"bf16, nhwc", "input=2,32,9,40 weight=8,32,3,9 padding=1,4 dtype=bf16 input_layout=nhwc", 3, folded(8)},
          {"data gradient", "input=2,16,12,37 weight=24,16,3,3 padding=1 operation=data_gradient math=tf32", 3,
           folded(4)},
          {"data gradient, dilated",
           "input=1,32,12,40 weight=20,32,2,9 padding=1,4 dilation=2,3 operation=data_gradient math=tf32", 3,
           folded(2)},
          {"data gradient with a stride",
           "input=1,4,18,43 weight=20,4,3,5 stride=2 padding=1 operation=data_gradient math=tf32", 2, folded(2)},
      });
}

// Channels of a position are neighbours in y, and one, two or more of a lane's are a store.
TEST(Quick, WgmmaFoldedNhwc) {
  const auto stores = [](int columns, int channels) {
    return folded(columns, [channels](const WgmmaGeometry& geometry) {
      return codegen::WgmmaStore(geometry).run_store_vector() == channels;
    });
  };
  const auto pingpong = [](const WgmmaTiling& tiling) { return tiling.schedule == WgmmaTiling::Schedule::pingpong; };
  const auto several = [](const WgmmaGeometry& geometry) { return geometry.row_ends() > 1; };
  run("wgmma, folded columns, NHWC",
      {
          {"eight, odd channels", "input=2,16,9,37 weight=3,16,7,7 padding=3 bias dtype=bf16 layout=nhwc", 3,
           stores(8, 1)},
          {"eight, pairs", "input=2,16,9,37 weight=6,16,3,5 padding=2 residual dtype=f16 layout=nhwc", 3, stores(8, 2)},
          {"four, a part of four", "input=2,8,9,37 weight=14,8,3,3 padding=1 bias math=tf32 layout=nhwc", 3,
           stores(4, 2)},
          {"four, all", "input=2,8,9,37 weight=12,8,3,3 padding=1 bias activation=relu math=tf32 layout=nhwc", 3,
           stores(4, 4)},
          {"two, eight halves", "input=2,16,9,37 weight=32,16,3,4 padding=1 dtype=bf16 layout=nhwc", 3, stores(2, 8)},
          {"two, half of eight floats", "input=2,8,9,37 weight=24,8,3,3 padding=1 residual math=tf32 layout=nhwc", 3,
           stores(2, 4)},
          {"split operands", "input=2,16,9,37 weight=5,16,3,5 padding=2 bias layout=nhwc", 2, stores(8, 1)},
          {"groups of odd channels", "input=2,32,9,37 weight=10,16,3,5 groups=2 padding=2 dtype=bf16 layout=nhwc", 2,
           stores(8, 1)},
          {"dilated", "input=1,16,9,60 weight=8,16,2,7 padding=1,6 dilation=1,2 dtype=f16 layout=nhwc", 3,
           stores(8, 2)},
          {"several rows end", "input=2,8,30,21 weight=8,8,3,3 padding=1 math=tf32 layout=nhwc", 3, folded(4, several)},
          {"a plane of less than a run", "input=3,16,6,9 weight=4,16,3,3 padding=1 dtype=bf16 layout=nhwc", 2,
           folded(4)},
          {"in turns", "input=3,16,17,20 weight=16,16,3,3 padding=1 bias dtype=bf16 layout=nhwc", 3,
           folded(4, pingpong), "sm_90a", 2},
          {"of an NCHW input", "input=2,12,9,37 weight=8,12,3,5 padding=2 math=tf32 output_layout=nhwc", 2, folded(8)},
          {"data gradient with a stride",
           "input=1,4,18,43 weight=24,4,3,5 stride=2 padding=1 operation=data_gradient math=tf32 layout=nhwc", 2,
           folded(2)},
          {"data gradient", "input=2,3,12,37 weight=24,3,5,5 padding=2 operation=data_gradient dtype=bf16 layout=nhwc",
           3, folded(8)},
      });
}

}  // namespace
}  // namespace jitconv::test
