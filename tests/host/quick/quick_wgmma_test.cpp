// Small kernels of the wgmma family, see quick_test.cpp: how weights and pixels come, and schedules.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>

#include "codegen/wgmma/store.h"
#include "host/quick/quick.h"

namespace jitconv::test {
namespace {

using codegen::WgmmaGeometry;
using codegen::WgmmaStore;
using codegen::WgmmaTiling;
using Schedule = WgmmaTiling::Schedule;

/// A plan with this schedule that is `wanted`, too.
Wanted scheduled(Schedule schedule, std::function<bool(const WgmmaGeometry&)> wanted) {
  return wgmma([schedule, wanted = std::move(wanted)](const WgmmaGeometry& geometry) {
    return geometry.tiling().schedule == schedule && wanted(geometry);
  });
}

TEST(Quick, WgmmaTransposedWeights) {
  const auto transposed = [](std::function<bool(const WgmmaTiling&)> wanted) {
    return wgmma([wanted = std::move(wanted)](const WgmmaTiling& tiling) {
      return tiling.takes_weights_transposed() && wanted(tiling);
    });
  };
  const Wanted im2col = transposed([](const WgmmaTiling& tiling) { return tiling.uses_im2col(); });
  const Wanted planes = transposed([](const WgmmaTiling& tiling) { return tiling.uses_planes(); });
  const Wanted loaded = transposed([](const WgmmaTiling& tiling) { return tiling.loads_pixels(); });
  const Wanted both_runs =
      transposed([](const WgmmaTiling& tiling) { return tiling.runs() == 2 && tiling.split_k == 1; });
  const Wanted split = transposed([](const WgmmaTiling& tiling) { return tiling.split_k > 1; });
  const std::string gradient = " operation=data_gradient";
  run("wgmma, transposed weights",
      {
          {"im2col", "input=2,72,5,12 weight=200,72,1,1 dtype=bf16 layout=nhwc" + gradient, 2, im2col},
          {"im2col, groups of no whole tiles",
           "input=2,160,7,9 weight=256,80,1,1 groups=2 dtype=f16 layout=nhwc" + gradient, 2, im2col},
          {"planes", "input=2,152,8,12 weight=72,152,1,1 dtype=bf16" + gradient, 2, planes},
          {"loaded pixels", "input=2,40,7,9 weight=100,40,1,1 dtype=f16" + gradient, 2, loaded},
          {"two runs, groups", "input=2,80,6,8 weight=160,40,1,1 groups=2 dtype=bf16" + gradient, 2, both_runs},
          {"a split reduction", "input=1,64,5,8 weight=288,64,1,1 dtype=f16 residual layout=nhwc" + gradient, 2, split},
      });
}

TEST(Quick, WgmmaUnpackedWeights) {
  const auto unpacked = [](std::function<bool(const WgmmaTiling&)> wanted) {
    return wgmma(
        [wanted = std::move(wanted)](const WgmmaTiling& tiling) { return !tiling.packs_weights() && wanted(tiling); });
  };
  const Wanted loaded =
      unpacked([](const WgmmaTiling& tiling) { return tiling.loads_pixels() && tiling.split_k == 1; });
  const Wanted two_runs = unpacked([](const WgmmaTiling& tiling) { return tiling.runs() == 2 && tiling.split_k == 1; });
  const Wanted two_slices =
      unpacked([](const WgmmaTiling& tiling) { return tiling.pipeline.slices == 2 && tiling.split_k == 1; });
  const Wanted four_slices =
      unpacked([](const WgmmaTiling& tiling) { return tiling.pipeline.slices == 4 && tiling.split_k == 1; });
  const Wanted copied =
      unpacked([](const WgmmaTiling& tiling) { return tiling.converts_pixels() && tiling.split_k == 1; });
  const Wanted split = unpacked([](const WgmmaTiling& tiling) { return tiling.split_k > 1; });
  // Who asks for a stage's next weights must know that all lanes have read those before.
  const Wanted stages_again = wgmma([](const WgmmaGeometry& geometry) {
    return !geometry.tiling().packs_weights() && geometry.tiling().split_k == 1 &&
           geometry.steps() > geometry.tiling().pipeline.stages;
  });
  run("wgmma, unpacked weights",
      {
          {"more steps than stages", "input=1,576,3,8 weight=24,576,1,1 math=tf32", 2, stages_again},
          {"3x3 taps, more steps than stages", "input=1,96,5,8 weight=24,96,3,3 padding=1 math=tf32", 2, stages_again},
          {"several steps", "input=2,256,5,12 weight=72,256,1,1 bias math=tf32", 2, loaded},
          {"groups and a stride",
           "input=2,192,11,13 weight=144,96,1,1 groups=2 stride=2 bias residual activation=relu math=tf32", 2, loaded},
          {"groups of no whole chunks, nor of whole tiles", "input=2,152,7,9 weight=300,76,1,1 groups=2 bias math=tf32",
           2, loaded},
          {"one step", "input=2,32,7,9 weight=70,32,1,1 math=tf32", 1, loaded},
          {"an only chunk that is not full", "input=2,28,7,9 weight=70,28,1,1 math=tf32", 1, loaded},
          {"copied pixels", "input=2,64,7,12 weight=72,64,1,1 residual math=tf32", 2, copied},
          {"a split reduction", "input=1,288,5,12 weight=40,288,1,1 bias math=tf32", 2, split},
          {"3x3 taps, two slices", "input=2,20,9,11 weight=72,20,3,3 padding=1 bias math=tf32", 2, two_slices},
          {"3x3 taps, four slices", "input=2,20,9,11 weight=72,20,3,3 padding=1 residual math=tf32", 2, four_slices},
          {"3x3 taps, two runs", "input=3,20,9,11 weight=40,20,3,3 padding=1 math=tf32", 2, two_runs},
          {"3x3 taps of groups", "input=2,40,9,11 weight=280,20,3,3 groups=2 padding=1,2,2,0 math=tf32", 2, loaded},
          {"dilated taps of copied pixels", "input=2,20,9,12 weight=24,20,3,5 dilation=2,1 padding=2 bias math=tf32", 2,
           copied},
          {"3x3 taps, a split reduction", "input=1,76,9,8 weight=24,76,3,3 padding=1 bias math=tf32", 2, split},
          {"a row of taps", "input=2,36,5,17 weight=24,36,1,3 padding=0,1 math=tf32", 2, loaded},
          {"a row of taps, not in the order of their pixels",
           "input=2,36,5,31 weight=24,36,1,5 stride=2,3 padding=0,2 math=tf32", 2, loaded},
          {"a column of taps", "input=2,36,17,5 weight=24,36,3,1 padding=1,0 math=tf32", 2, loaded},
      });
}

// Strides of 2, whose pixels of either phase are loaded together. Behind an odd padding a pair has pixels of two
// positions, which may lie in two rows or images.
TEST(Quick, WgmmaPhasePairs) {
  const auto pairs = [](std::function<bool(const WgmmaTiling&)> wanted) {
    return wgmma([wanted = std::move(wanted)](const WgmmaGeometry& geometry) {
      return geometry.pixels().loads_phase_pairs() && wanted(geometry.tiling());
    });
  };
  const Wanted any = pairs([](const WgmmaTiling&) { return true; });
  const Wanted one_by_one = wgmma([](const WgmmaGeometry& geometry) {
    return geometry.tiling().loads_pixels() && !geometry.pixels().loads_phase_pairs();
  });
  const Wanted images = pairs([](const WgmmaTiling& tiling) { return tiling.tile.images > 1; });
  const Wanted resident = pairs([](const WgmmaTiling& tiling) { return tiling.keeps_weights(); });
  const Wanted teams = pairs([](const WgmmaTiling& tiling) { return tiling.producer.team_warps == 4; });
  const Wanted split = pairs([](const WgmmaTiling& tiling) { return tiling.split_k > 1; });
  run("wgmma, pairs of phases",
      {
          {"an odd padding", "input=2,20,9,46 weight=72,20,3,3 stride=2 padding=1 bias dtype=bf16", 2, any},
          {"an odd padding, floats", "input=2,20,9,46 weight=72,20,3,3 stride=2 padding=1 bias math=tf32", 2, any},
          {"an odd padding, split operands", "input=2,20,9,46 weight=72,20,3,3 stride=2 padding=1 bias", 2, any},
          {"an even padding", "input=2,33,8,40 weight=40,33,4,5 stride=2 padding=2 dtype=f16", 2, any},
          {"an even padding, floats", "input=2,11,8,40 weight=40,11,4,5 stride=2 padding=2 residual math=tf32", 2, any},
          {"an odd padding on the left alone", "input=2,20,6,18 weight=24,20,1,2 stride=2 padding=0,0,1,0 dtype=bf16",
           2, one_by_one},
          {"no padding, split operands", "input=2,20,8,40 weight=40,20,3,4 stride=2 residual", 2, any},
          {"no padding", "input=2,20,8,40 weight=40,20,3,4 stride=2 residual dtype=bf16", 2, any},
          {"columns that no tap meets", "input=2,20,8,40 weight=40,20,3,2 stride=1,2 dtype=f16", 2, any},
          {"rows longer than the filter reaches", "input=2,20,5,18 weight=24,20,1,2 stride=2 padding=0,1 dtype=bf16", 2,
           any},
          {"images", "input=9,24,8,8 weight=24,24,3,3 stride=2 padding=1 dtype=f16", 2, images},
          {"images, floats", "input=9,12,8,8 weight=24,12,3,3 stride=2 padding=1 math=tf32", 2, images},
          {"images, an odd number of channels", "input=9,13,8,8 weight=24,13,3,3 stride=2 padding=1 dtype=bf16", 2,
           images},
          {"groups", "input=2,48,9,30 weight=80,24,3,3 groups=2 stride=2 padding=1 dtype=bf16", 2, any},
          {"dilated", "input=1,8,6,62 weight=20,8,1,3 stride=1,2 dilation=1,3 padding=0,3 dtype=f16", 2, any},
          {"weights that stay", "input=2,20,9,46 weight=24,20,3,3 stride=2 padding=1 dtype=bf16", 2, resident},
          {"weights that stay, floats", "input=2,20,9,46 weight=24,20,3,3 stride=2 padding=1 math=tf32", 2, resident},
          {"teams of four warps", "input=1,20,9,300 weight=72,20,3,3 stride=2 padding=1 dtype=bf16", 2, teams},
          {"a split reduction", "input=1,96,6,30 weight=40,96,3,3 stride=2 padding=1 dtype=bf16", 2, split},
      });
}

// Warpgroups that take tiles in turn, several tiles to a block: an odd number and an even one, more stages than a tile
// has steps and fewer, and as many.
TEST(Quick, WgmmaPingpong) {
  const auto pingpong = [](std::function<bool(const WgmmaTiling&)> wanted) {
    return scheduled(Schedule::pingpong,
                     [wanted = std::move(wanted)](const WgmmaGeometry& geometry) { return wanted(geometry.tiling()); });
  };
  const auto steps = [](std::function<bool(std::int64_t steps, int stages)> wanted) {
    return scheduled(Schedule::pingpong, [wanted = std::move(wanted)](const WgmmaGeometry& geometry) {
      return wanted(geometry.steps(), geometry.tiling().pipeline.stages);
    });
  };
  const Wanted fewer = steps([](std::int64_t all, int stages) { return all < stages; });
  const Wanted as_many = steps([](std::int64_t all, int stages) { return all == stages; });
  const Wanted more = steps([](std::int64_t all, int stages) { return all > stages && all % stages != 0; });
  const Wanted twice = steps([](std::int64_t all, int stages) { return all == 2 * stages; });
  const Wanted resident = pingpong([](const WgmmaTiling& tiling) { return tiling.keeps_weights(); });
  const Wanted resident_copies =
      pingpong([](const WgmmaTiling& tiling) { return tiling.keeps_weights() && tiling.converts_pixels(); });
  const Wanted unpacked = pingpong([](const WgmmaTiling& tiling) { return !tiling.packs_weights(); });
  const Wanted copies = pingpong([](const WgmmaTiling& tiling) { return tiling.converts_pixels(); });
  const Wanted images = pingpong([](const WgmmaTiling& tiling) { return tiling.tile.images > 0; });
  const Wanted any = pingpong([](const WgmmaTiling&) { return true; });
  const Wanted one_tile =
      scheduled(Schedule::pingpong, [](const WgmmaGeometry& geometry) { return geometry.tiles() == 1; });
  const Wanted odd_tiles =
      scheduled(Schedule::pingpong, [](const WgmmaGeometry& geometry) { return geometry.tiles() % 2 == 1; });
  const char* const plane = "input=3,20,17,20 weight=24,20,3,3 padding=1 bias math=tf32";
  run("wgmma, pingpong",
      {
          {"fewer steps than stages", plane, 2, fewer, "sm_90a", 1},
          {"as many steps as stages", "input=3,52,9,20 weight=24,52,3,3 padding=1 math=tf32", 2, as_many, "sm_90a", 2},
          {"more steps than stages", "input=3,52,9,20 weight=24,52,3,3 padding=1 residual math=tf32", 3, more, "sm_90a",
           2},
          {"twice as many", "input=3,64,9,20 weight=24,64,3,3 padding=1 math=tf32", 2, twice, "sm_90a", 1},
          {"an odd number of tiles", plane, 2, odd_tiles, "sm_90a", 1},
          {"one tile of a block", "input=1,20,7,8 weight=24,20,3,3 padding=1 math=tf32", 2, one_tile, "sm_90a", 1},
          {"weights in shared memory", plane, 2, resident, "sm_90a", 2},
          {"weights in shared memory, copied pixels", plane, 2, resident_copies, "sm_90a", 2},
          {"weights as they lie in w", "input=3,76,9,20 weight=72,76,1,1 bias math=tf32", 2, unpacked, "sm_90a", 2},
          {"weights as they lie in w, 3x3 taps", "input=3,76,9,20 weight=72,76,3,3 padding=1 math=tf32", 2, unpacked,
           "sm_90a", 2},
          {"copied pixels", plane, 2, copies, "sm_90a", 2},
          {"whole images", "input=11,20,7,6 weight=72,20,3,3 padding=1 bias math=tf32", 2, images, "sm_90a", 2},
          {"groups of fp16", "input=2,40,15,14 weight=48,20,3,3 groups=2 padding=1 dtype=f16 residual", 2, any,
           "sm_90a", 3},
          {"nhwc", "input=2,24,17,20 weight=72,24,3,3 padding=1 bias dtype=bf16 input_layout=nhwc output_layout=nhwc",
           2, any, "sm_90a", 3},
          {"nhwc, tf32", "input=2,24,17,20 weight=72,24,3,3 math=tf32 residual output_layout=nhwc", 2, any, "sm_90a",
           3},
      });
}

// Warpgroups that take a tile's steps in turn and add their sums: even and odd numbers of steps, several tiles to a
// block, runs that stay inside a plane and do not.
TEST(Quick, WgmmaSlicedK) {
  const auto sliced_k = [](std::function<bool(const WgmmaGeometry&)> wanted) {
    return scheduled(Schedule::sliced_k, std::move(wanted));
  };
  const Wanted odd = sliced_k([](const WgmmaGeometry& geometry) {
    return geometry.tiling().split_k == 1 && geometry.steps() % 2 == 1 &&
           geometry.steps() > geometry.tiling().pipeline.stages;
  });
  const Wanted few = sliced_k([](const WgmmaGeometry& geometry) {
    return geometry.tiling().split_k == 1 && geometry.steps() < geometry.tiling().pipeline.stages;
  });
  const Wanted unpacked = sliced_k([](const WgmmaGeometry& geometry) {
    return !geometry.tiling().packs_weights() && geometry.tiling().split_k == 1;
  });
  const Wanted resident = sliced_k([](const WgmmaGeometry& geometry) {
    return geometry.tiling().keeps_weights() && geometry.tiling().split_k == 1;
  });
  const Wanted copies = sliced_k([](const WgmmaGeometry& geometry) {
    return geometry.tiling().converts_pixels() && geometry.tiling().split_k == 1;
  });
  const Wanted images = sliced_k([](const WgmmaGeometry& geometry) {
    return geometry.tiling().tile.images > 0 && geometry.tiling().split_k == 1;
  });
  const Wanted bulk = sliced_k([](const WgmmaGeometry& geometry) {
    return WgmmaStore(geometry).stores_bulk() && geometry.tiling().split_k == 1;
  });
  const Wanted vectors = sliced_k([](const WgmmaGeometry& geometry) {
    return !WgmmaStore(geometry).stores_bulk() && geometry.tiling().tile.images == 0 && geometry.tiling().split_k == 1;
  });
  const Wanted split = sliced_k([](const WgmmaGeometry& geometry) { return geometry.tiling().split_k > 1; });
  run("wgmma, sliced-K",
      {
          {"an odd number of steps", "input=3,36,9,20 weight=24,36,3,3 padding=1 bias math=tf32", 3, odd, "sm_90a", 2},
          {"fewer steps than stages", "input=3,20,9,20 weight=24,20,3,3 padding=1 math=tf32", 2, few, "sm_90a", 1},
          {"weights as they lie in w", "input=3,140,9,20 weight=72,140,1,1 bias activation=relu math=tf32", 3, unpacked,
           "sm_90a", 2},
          {"weights as they lie in w, 3x3 taps", "input=3,76,9,20 weight=72,76,3,3 padding=1 math=tf32", 2, unpacked,
           "sm_90a", 2},
          {"weights in shared memory", "input=3,20,17,20 weight=24,20,3,3 padding=1 residual math=tf32", 2, resident,
           "sm_90a", 2},
          {"copied pixels", "input=3,52,9,20 weight=70,52,3,3 padding=1 math=tf32", 2, copies, "sm_90a", 2},
          {"whole images", "input=11,68,7,6 weight=72,68,3,3 padding=1 bias math=tf32", 3, images, "sm_90a", 2},
          {"TMA stores", "input=3,20,16,36 weight=24,20,3,3 padding=1 bias math=tf32", 2, bulk, "sm_90a", 2},
          {"vectors", "input=3,20,15,35 weight=72,20,3,3 padding=1 bias math=tf32", 2, vectors, "sm_90a", 2},
          {"groups", "input=2,72,13,14 weight=48,36,3,3 groups=2 padding=1 math=tf32", 2, vectors, "sm_90a", 2},
          {"a split reduction", "input=2,140,7,9 weight=40,140,1,1 bias math=tf32", 2, split, "sm_90a", 2},
          {"a split reduction of fp16", "input=2,140,7,9 weight=40,140,3,3 padding=1 bias dtype=f16", 2, split,
           "sm_90a", 2},
      });
}

// Boxes of a part of each plane, which begin and end outside of it, and of rows of x.
TEST(Quick, WgmmaBoxes) {
  const auto boxes = [](std::function<bool(const WgmmaGeometry&)> wanted) {
    return wgmma([wanted = std::move(wanted)](const WgmmaGeometry& geometry) {
      return geometry.pixels().copies_boxes() && wanted(geometry);
    });
  };
  const Wanted packed = boxes([](const WgmmaGeometry& geometry) {
    return !geometry.pixels().copies_rows() && geometry.tiling().packs_weights() && geometry.tiling().split_k == 1;
  });
  const Wanted unpacked = boxes([](const WgmmaGeometry& geometry) {
    return !geometry.pixels().copies_rows() && !geometry.tiling().packs_weights() && geometry.tiling().split_k == 1;
  });
  const Wanted split = boxes([](const WgmmaGeometry& geometry) { return geometry.tiling().split_k > 1; });
  const Wanted two_runs = boxes([](const WgmmaGeometry& geometry) {
    return !geometry.pixels().copies_rows() && geometry.tiling().runs() == 2 && geometry.tiling().split_k == 1;
  });
  const Wanted long_runs = boxes([](const WgmmaGeometry& geometry) {
    return geometry.tiling().tile.columns >= 128 && geometry.pixels().raw_pitch() == geometry.problem().input_plane();
  });
  const Wanted rows = boxes([](const WgmmaGeometry& geometry) {
    return geometry.pixels().copies_rows() && geometry.tiling().packs_weights() && geometry.tiling().split_k == 1;
  });
  const Wanted rows_unpacked = boxes([](const WgmmaGeometry& geometry) {
    return geometry.pixels().copies_rows() && !geometry.tiling().packs_weights() && geometry.tiling().split_k == 1;
  });
  const Wanted rows_two_runs = boxes([](const WgmmaGeometry& geometry) {
    return geometry.pixels().copies_rows() && geometry.tiling().runs() == 2 && geometry.tiling().split_k == 1;
  });
  run("wgmma, boxes",
      {
          {"padding on all sides", "input=2,20,17,20 weight=24,20,3,3 padding=1,2,2,0 bias math=tf32", 3, packed},
          {"all filter rows", "input=2,20,17,20 weight=24,20,3,3 padding=1 bias residual math=tf32", 2, unpacked},
          {"more padding than taps", "input=2,20,14,18 weight=24,20,3,3 padding=4,5,3,6 math=tf32", 2, packed},
          {"groups of no whole chunks", "input=2,40,17,20 weight=48,20,3,3 groups=2 padding=1 math=tf32", 2, packed},
          {"a run as long as its plane, padding before it", "input=2,20,4,16 weight=24,20,3,3 padding=4 math=tf32", 1,
           long_runs},
          {"one slice of two runs", "input=2,3,17,20 weight=40,3,3,3 padding=1 math=tf32", 2, two_runs},
          {"a stride", "input=2,20,33,32 weight=24,20,3,3 stride=2 padding=1 math=tf32", 2, packed},
          {"a split reduction", "input=1,72,17,20 weight=24,72,3,3 padding=1 math=tf32", 1, split},
          {"a matrix", "input=2,76,17,20 weight=72,76,1,1 math=tf32", 2, unpacked},
          {"rows", "input=2,20,41,40 weight=24,20,1,1 stride=2 bias math=tf32", 2, rows},
          {"rows, two rows of padding", "input=2,20,38,40 weight=24,20,1,1 stride=2 padding=2,0 math=tf32", 2, rows},
          {"rows, unequal padding", "input=2,20,38,40 weight=24,20,1,3 stride=2,1 padding=4,3,1,2 math=tf32", 2, rows},
          {"rows of weights as they lie", "input=2,76,37,36 weight=72,76,1,1 stride=2 padding=2,1 math=tf32", 2,
           rows_unpacked},
          {"rows of weights as they lie, taps not in order",
           "input=2,36,29,60 weight=24,36,1,5 stride=2,3 padding=2,2 math=tf32", 2, rows_unpacked},
          {"rows of two runs", "input=2,20,49,48 weight=24,20,1,1 stride=3,2 math=tf32", 2, rows_two_runs},
          {"rows of a stride along the other axis alone",
           "input=2,20,40,24 weight=24,20,1,1 stride=2,1 padding=2,0 math=tf32 bias", 2, rows},
          {"rows of groups", "input=2,40,41,40 weight=48,20,1,1 groups=2 stride=2 math=tf32", 2, rows},
      });
}

TEST(Quick, WgmmaIm2col) {
  const auto im2col = [](std::function<bool(const WgmmaTiling&)> wanted) {
    return wgmma(
        [wanted = std::move(wanted)](const WgmmaTiling& tiling) { return tiling.uses_im2col() && wanted(tiling); });
  };
  const auto of = [&im2col](int slices) {
    return im2col(
        [slices](const WgmmaTiling& tiling) { return tiling.pipeline.slices == slices && tiling.split_k == 1; });
  };
  const Wanted all_rows = im2col([](const WgmmaTiling& tiling) { return tiling.pipeline.filter_rows == 3; });
  const Wanted two_runs = im2col([](const WgmmaTiling& tiling) { return tiling.runs() == 2 && tiling.split_k == 1; });
  const Wanted images = im2col([](const WgmmaTiling& tiling) { return tiling.tile.images > 1 && tiling.runs() == 2; });
  const Wanted resident = im2col([](const WgmmaTiling& tiling) { return tiling.keeps_weights(); });
  const Wanted unpacked =
      im2col([](const WgmmaTiling& tiling) { return !tiling.packs_weights() && tiling.split_k == 1; });
  const Wanted split = im2col([](const WgmmaTiling& tiling) { return tiling.split_k > 1; });
  const Wanted pingpong = im2col([](const WgmmaTiling& tiling) { return tiling.schedule == Schedule::pingpong; });
  const Wanted sliced_k = im2col([](const WgmmaTiling& tiling) { return tiling.schedule == Schedule::sliced_k; });
  const Wanted cooperative = im2col(
      [](const WgmmaTiling& tiling) { return tiling.schedule == Schedule::cooperative && tiling.tile.images == 0; });
  const Wanted again = wgmma([](const WgmmaGeometry& geometry) {
    return geometry.tiling().uses_im2col() && !geometry.tiling().packs_weights() &&
           geometry.steps() > geometry.tiling().pipeline.stages && geometry.tiling().split_k == 1;
  });
  const std::string both = " input_layout=nhwc output_layout=nhwc";
  run("wgmma, im2col",
      {
          {"rows of 32 bytes", "input=2,24,13,35 weight=24,24,3,3 padding=1,2,2,0 bias residual math=tf32" + both, 2,
           of(2)},
          {"rows of 64 bytes", "input=2,24,13,35 weight=24,24,3,3 padding=1,2,2,0 bias math=tf32" + both, 2, of(4)},
          {"rows of 128 bytes", "input=2,40,13,35 weight=24,40,3,3 padding=1,2,2,0 bias math=tf32" + both, 2, of(8)},
          {"all filter rows, dilation", "input=2,32,17,21 weight=70,32,3,4 padding=2,3 dilation=2,1 math=tf32" + both,
           2, all_rows},
          {"strides with residues, groups",
           "input=2,64,25,32 weight=48,32,3,5 groups=2 stride=2,3 padding=1 math=tf32" + both, 2, of(8)},
          {"two runs of planes", "input=3,32,9,11 weight=24,32,3,3 padding=1 math=tf32" + both, 2, two_runs},
          {"two runs of several images", "input=7,32,7,6 weight=24,32,3,3 stride=2 padding=1 bias math=tf32" + both, 2,
           images},
          {"a second run without images", "input=9,32,7,6 weight=24,32,3,3 stride=2 padding=1 math=tf32" + both, 2,
           images},
          {"resident weights, fp16", "input=2,32,13,35 weight=40,32,3,3 padding=1 dtype=f16 residual" + both, 2,
           resident},
          {"weights as they lie", "input=2,40,15,17 weight=150,40,1,1 stride=2 padding=1,0 bias math=tf32" + both, 2,
           unpacked},
          {"weights as they lie, bf16, groups", "input=2,128,9,13 weight=72,64,1,1 groups=2 dtype=bf16" + both, 2,
           unpacked},
          {"stages that come again", "input=1,320,9,13 weight=72,320,1,1 math=tf32" + both, 2, again},
          {"a split reduction", "input=1,72,9,10 weight=24,72,3,3 padding=1 bias math=tf32" + both, 2, split},
          {"tiles in turn, to NCHW", "input=2,32,17,23 weight=70,32,3,3 padding=1 math=tf32 input_layout=nhwc", 2,
           pingpong},
          {"steps in turn, to NCHW", "input=2,48,17,23 weight=70,48,3,3 padding=1 math=tf32 input_layout=nhwc", 2,
           sliced_k},
          {"shared tiles, to NCHW", "input=2,40,17,23 weight=70,40,3,3 padding=1 math=tf32 input_layout=nhwc", 2,
           cooperative},
      });
}

TEST(Quick, WgmmaTransposedInput) {
  const Wanted any = transposed([](const WgmmaTiling& tiling) { return tiling.split_k == 1; });
  const Wanted images =
      transposed([](const WgmmaTiling& tiling) { return tiling.tile.images > 1 && tiling.split_k == 1; });
  const Wanted resident = transposed([](const WgmmaTiling& tiling) { return tiling.keeps_weights(); });
  const Wanted unpacked =
      transposed([](const WgmmaTiling& tiling) { return !tiling.packs_weights() && tiling.split_k == 1; });
  const Wanted split = transposed([](const WgmmaTiling& tiling) { return tiling.split_k > 1; });
  const Wanted pingpong = transposed([](const WgmmaTiling& tiling) { return tiling.schedule == Schedule::pingpong; });
  run("wgmma, transposed input",
      {
          {"channels that end inside a slice", "input=2,22,13,35 weight=24,22,3,3 padding=1,2,2,0 bias math=tf32", 2,
           any},
          {"two slices", "input=3,8,13,35 weight=24,8,3,3 padding=1 residual math=tf32", 1, any},
          {"several tiles of slices", "input=2,68,5,15 weight=24,68,3,3 padding=1 math=tf32", 1, any},
          {"pairs of pixels, tiles of two images", "input=3,40,5,18 weight=24,40,3,3 padding=1 bias dtype=bf16", 2,
           any},
          {"pairs of pixels of every second row", "input=2,19,9,10 weight=24,19,1,1 stride=2,1 dtype=f16", 2, any},
          {"odd channels of fp16", "input=2,19,13,17 weight=40,19,3,3 padding=1 dtype=f16", 2, any},
          {"strides with residues, groups", "input=2,64,25,32 weight=48,32,3,5 groups=2 stride=2,3 padding=1 math=tf32",
           2, any},
          {"a stride whose rest is not read", "input=2,20,25,32 weight=40,20,1,1 stride=2,3 padding=1,2 math=tf32", 2,
           any},
          {"dilation that leaves a residue of rows",
           "input=2,20,25,32 weight=40,20,3,3 stride=2 dilation=4,1 padding=1 math=tf32", 2, any},
          {"several images", "input=7,32,7,6 weight=24,32,3,3 stride=2 padding=1 bias math=tf32", 2, images},
          {"resident weights", "input=2,32,13,35 weight=40,32,3,3 padding=1 dtype=bf16 residual", 2, resident},
          {"weights as they lie", "input=2,40,15,17 weight=150,40,1,1 stride=2 padding=1,0 bias math=tf32", 2,
           unpacked},
          {"a split reduction", "input=1,72,9,10 weight=24,72,3,3 padding=1 bias math=tf32", 2, split},
          {"tiles in turn", "input=2,32,17,23 weight=70,32,3,3 padding=1 math=tf32", 2, pingpong},
          {"to NHWC", "input=2,20,17,23 weight=70,20,3,3 padding=1 math=tf32 output_layout=nhwc", 2, any},
      });
}

}  // namespace
}  // namespace jitconv::test
