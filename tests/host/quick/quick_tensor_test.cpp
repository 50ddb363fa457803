// Small kernels of the tensor family, see quick_test.cpp: how weights and pixels come, and what warpgroups share.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>

#include "host/quick/quick.h"

namespace jitconv::test {
namespace {

using codegen::WgmmaTiling;
using Share = WgmmaTiling::Share;

/// Whose multiplying warpgroups share this, and `wanted`.
Wanted sharing(Share share, std::function<bool(const WgmmaTiling&, const ConvSpec&)> wanted) {
  return tensor([share, wanted = std::move(wanted)](const WgmmaTiling& tiling, const ConvSpec& spec) {
    return tiling.share == share && wanted(tiling, spec);
  });
}

TEST(Quick, TensorRawWeights) {
  const auto raw = [](std::function<bool(const WgmmaTiling&)> wanted) {
    return tensor(
        [wanted = std::move(wanted)](const WgmmaTiling& tiling) { return tiling.raw_weights && wanted(tiling); });
  };
  const Wanted loaded = raw([](const WgmmaTiling& tiling) { return tiling.loads_pixels() && tiling.splits == 1; });
  const Wanted two_runs = raw([](const WgmmaTiling& tiling) { return tiling.runs() == 2 && tiling.splits == 1; });
  const Wanted two_slices = raw([](const WgmmaTiling& tiling) { return tiling.slices == 2 && tiling.splits == 1; });
  const Wanted four_slices = raw([](const WgmmaTiling& tiling) { return tiling.slices == 4 && tiling.splits == 1; });
  const Wanted copied = raw([](const WgmmaTiling& tiling) { return tiling.copies_pixels() && tiling.splits == 1; });
  const Wanted split = raw([](const WgmmaTiling& tiling) { return tiling.splits > 1; });
  // Who asks for a stage's next weights must know that all lanes have read those before.
  const Wanted stages_again = tensor([](const WgmmaTiling& tiling, const ConvSpec& spec) {
    return tiling.raw_weights && tiling.splits == 1 && tiling.steps(spec) > tiling.stages;
  });
  run("tensor, raw weights",
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

// Warpgroups that take tiles in turn, several tiles to a block: an odd number and an even one, more stages than a tile
// has steps and fewer, and as many.
TEST(Quick, TensorTurns) {
  const auto turns = [](std::function<bool(const WgmmaTiling&)> wanted) {
    return sharing(Share::turns, [wanted = std::move(wanted)](const WgmmaTiling& tiling, const ConvSpec&) {
      return wanted(tiling);
    });
  };
  const auto steps = [](std::function<bool(std::int64_t steps, int stages)> wanted) {
    return sharing(Share::turns, [wanted = std::move(wanted)](const WgmmaTiling& tiling, const ConvSpec& spec) {
      return wanted(tiling.steps(spec), tiling.stages);
    });
  };
  const Wanted fewer = steps([](std::int64_t all, int stages) { return all < stages; });
  const Wanted as_many = steps([](std::int64_t all, int stages) { return all == stages; });
  const Wanted more = steps([](std::int64_t all, int stages) { return all > stages && all % stages != 0; });
  const Wanted twice = steps([](std::int64_t all, int stages) { return all == 2 * stages; });
  const Wanted resident = turns([](const WgmmaTiling& tiling) { return tiling.resident; });
  const Wanted resident_copies =
      turns([](const WgmmaTiling& tiling) { return tiling.resident && tiling.copies_pixels(); });
  const Wanted raw = turns([](const WgmmaTiling& tiling) { return tiling.raw_weights; });
  const Wanted copies = turns([](const WgmmaTiling& tiling) { return tiling.copies_pixels(); });
  const Wanted images = turns([](const WgmmaTiling& tiling) { return tiling.images > 0; });
  const Wanted any = turns([](const WgmmaTiling&) { return true; });
  const Wanted one_tile =
      sharing(Share::turns, [](const WgmmaTiling& tiling, const ConvSpec& spec) { return tiling.tiles(spec) == 1; });
  const Wanted odd_tiles = sharing(
      Share::turns, [](const WgmmaTiling& tiling, const ConvSpec& spec) { return tiling.tiles(spec) % 2 == 1; });
  const char* const plane = "input=3,20,17,20 weight=24,20,3,3 padding=1 bias math=tf32";
  run("tensor, turns",
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
          {"weights as they lie in w", "input=3,76,9,20 weight=72,76,1,1 bias math=tf32", 2, raw, "sm_90a", 2},
          {"weights as they lie in w, 3x3 taps", "input=3,76,9,20 weight=72,76,3,3 padding=1 math=tf32", 2, raw,
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
TEST(Quick, TensorSharedSteps) {
  const auto shared = [](std::function<bool(const WgmmaTiling&, const ConvSpec&)> wanted) {
    return sharing(Share::steps, std::move(wanted));
  };
  const Wanted odd = shared([](const WgmmaTiling& tiling, const ConvSpec& spec) {
    return tiling.splits == 1 && tiling.steps(spec) % 2 == 1 && tiling.steps(spec) > tiling.stages;
  });
  const Wanted few = shared([](const WgmmaTiling& tiling, const ConvSpec& spec) {
    return tiling.splits == 1 && tiling.steps(spec) < tiling.stages;
  });
  const Wanted raw =
      shared([](const WgmmaTiling& tiling, const ConvSpec&) { return tiling.raw_weights && tiling.splits == 1; });
  const Wanted resident =
      shared([](const WgmmaTiling& tiling, const ConvSpec&) { return tiling.resident && tiling.splits == 1; });
  const Wanted copies =
      shared([](const WgmmaTiling& tiling, const ConvSpec&) { return tiling.copies_pixels() && tiling.splits == 1; });
  const Wanted images =
      shared([](const WgmmaTiling& tiling, const ConvSpec&) { return tiling.images > 0 && tiling.splits == 1; });
  const Wanted bulk = shared(
      [](const WgmmaTiling& tiling, const ConvSpec& spec) { return tiling.stores_bulk(spec) && tiling.splits == 1; });
  const Wanted vectors = shared([](const WgmmaTiling& tiling, const ConvSpec& spec) {
    return !tiling.stores_bulk(spec) && tiling.images == 0 && tiling.splits == 1;
  });
  const Wanted split = shared([](const WgmmaTiling& tiling, const ConvSpec&) { return tiling.splits > 1; });
  run("tensor, shared steps",
      {
          {"an odd number of steps", "input=3,36,9,20 weight=24,36,3,3 padding=1 bias math=tf32", 3, odd, "sm_90a", 2},
          {"fewer steps than stages", "input=3,20,9,20 weight=24,20,3,3 padding=1 math=tf32", 2, few, "sm_90a", 1},
          {"weights as they lie in w", "input=3,140,9,20 weight=72,140,1,1 bias activation=relu math=tf32", 3, raw,
           "sm_90a", 2},
          {"weights as they lie in w, 3x3 taps", "input=3,76,9,20 weight=72,76,3,3 padding=1 math=tf32", 2, raw,
           "sm_90a", 2},
          {"weights in shared memory", "input=3,20,17,20 weight=24,20,3,3 padding=1 residual math=tf32", 2, resident,
           "sm_90a", 2},
          {"copied pixels", "input=3,52,9,20 weight=70,52,3,3 padding=1 math=tf32", 2, copies, "sm_90a", 2},
          {"whole images", "input=11,68,7,6 weight=72,68,3,3 padding=1 bias math=tf32", 3, images, "sm_90a", 2},
          {"the copy engine stores", "input=3,20,16,36 weight=24,20,3,3 padding=1 bias math=tf32", 2, bulk, "sm_90a",
           2},
          {"vectors", "input=3,20,15,35 weight=72,20,3,3 padding=1 bias math=tf32", 2, vectors, "sm_90a", 2},
          {"groups", "input=2,72,13,14 weight=48,36,3,3 groups=2 padding=1 math=tf32", 2, vectors, "sm_90a", 2},
          {"a split reduction", "input=2,140,7,9 weight=40,140,1,1 bias math=tf32", 2, split, "sm_90a", 2},
          {"a split reduction of fp16", "input=2,140,7,9 weight=40,140,3,3 padding=1 bias dtype=f16", 2, split,
           "sm_90a", 2},
      });
}

// Boxes of a part of each plane, which begin and end outside of it, and of rows of x.
TEST(Quick, TensorBoxes) {
  const auto boxes = [](std::function<bool(const WgmmaTiling&, const ConvSpec&)> wanted) {
    return tensor([wanted = std::move(wanted)](const WgmmaTiling& tiling, const ConvSpec& spec) {
      return tiling.copies_boxes(spec) && wanted(tiling, spec);
    });
  };
  const Wanted packed = boxes([](const WgmmaTiling& tiling, const ConvSpec& spec) {
    return !tiling.copies_rows(spec) && tiling.packs_weights() && tiling.splits == 1;
  });
  const Wanted raw = boxes([](const WgmmaTiling& tiling, const ConvSpec& spec) {
    return !tiling.copies_rows(spec) && tiling.raw_weights && tiling.splits == 1;
  });
  const Wanted split = boxes([](const WgmmaTiling& tiling, const ConvSpec&) { return tiling.splits > 1; });
  const Wanted two_runs = boxes([](const WgmmaTiling& tiling, const ConvSpec& spec) {
    return !tiling.copies_rows(spec) && tiling.runs() == 2 && tiling.splits == 1;
  });
  const Wanted long_runs = boxes([](const WgmmaTiling& tiling, const ConvSpec& spec) {
    return tiling.columns >= 128 && tiling.raw_pitch(spec) == spec.input.h * spec.input.w;
  });
  const Wanted rows = boxes([](const WgmmaTiling& tiling, const ConvSpec& spec) {
    return tiling.copies_rows(spec) && tiling.packs_weights() && tiling.splits == 1;
  });
  const Wanted rows_raw = boxes([](const WgmmaTiling& tiling, const ConvSpec& spec) {
    return tiling.copies_rows(spec) && tiling.raw_weights && tiling.splits == 1;
  });
  const Wanted rows_two_runs = boxes([](const WgmmaTiling& tiling, const ConvSpec& spec) {
    return tiling.copies_rows(spec) && tiling.runs() == 2 && tiling.splits == 1;
  });
  run("tensor, boxes",
      {
          {"padding on all sides", "input=2,20,17,20 weight=24,20,3,3 padding=1,2,2,0 bias math=tf32", 3, packed},
          {"all filter rows", "input=2,20,17,20 weight=24,20,3,3 padding=1 bias residual math=tf32", 2, raw},
          {"more padding than taps", "input=2,20,14,18 weight=24,20,3,3 padding=4,5,3,6 math=tf32", 2, packed},
          {"groups of no whole chunks", "input=2,40,17,20 weight=48,20,3,3 groups=2 padding=1 math=tf32", 2, packed},
          {"a run as long as its plane, padding before it", "input=2,20,4,16 weight=24,20,3,3 padding=4 math=tf32", 1,
           long_runs},
          {"one slice of two runs", "input=2,3,17,20 weight=40,3,3,3 padding=1 math=tf32", 2, two_runs},
          {"a stride", "input=2,20,33,32 weight=24,20,3,3 stride=2 padding=1 math=tf32", 2, packed},
          {"a split reduction", "input=1,72,17,20 weight=24,72,3,3 padding=1 math=tf32", 1, split},
          {"a matrix", "input=2,76,17,20 weight=72,76,1,1 math=tf32", 2, raw},
          {"rows", "input=2,20,41,40 weight=24,20,1,1 stride=2 bias math=tf32", 2, rows},
          {"rows, two rows of padding", "input=2,20,38,40 weight=24,20,1,1 stride=2 padding=2,0 math=tf32", 2, rows},
          {"rows, unequal padding", "input=2,20,38,40 weight=24,20,1,3 stride=2,1 padding=4,3,1,2 math=tf32", 2, rows},
          {"rows of weights as they lie", "input=2,76,37,36 weight=72,76,1,1 stride=2 padding=2,1 math=tf32", 2,
           rows_raw},
          {"rows of weights as they lie, taps not in order",
           "input=2,36,29,60 weight=24,36,1,5 stride=2,3 padding=2,2 math=tf32", 2, rows_raw},
          {"rows of two runs", "input=2,20,49,48 weight=24,20,1,1 stride=3,2 math=tf32", 2, rows_two_runs},
          {"rows of a stride along the other axis alone",
           "input=2,20,40,24 weight=24,20,1,1 stride=2,1 padding=2,0 math=tf32 bias", 2, rows},
          {"rows of groups", "input=2,40,41,40 weight=48,20,1,1 groups=2 stride=2 math=tf32", 2, rows},
      });
}

TEST(Quick, TensorWalks) {
  const auto walks = [](std::function<bool(const WgmmaTiling&)> wanted) {
    return tensor(
        [wanted = std::move(wanted)](const WgmmaTiling& tiling) { return tiling.walks_pixels() && wanted(tiling); });
  };
  const auto of = [&walks](int slices) {
    return walks([slices](const WgmmaTiling& tiling) { return tiling.slices == slices && tiling.splits == 1; });
  };
  const Wanted all_rows = walks([](const WgmmaTiling& tiling) { return tiling.filter_rows == 3; });
  const Wanted two_runs = walks([](const WgmmaTiling& tiling) { return tiling.runs() == 2 && tiling.splits == 1; });
  const Wanted images = walks([](const WgmmaTiling& tiling) { return tiling.images > 1 && tiling.runs() == 2; });
  const Wanted resident = walks([](const WgmmaTiling& tiling) { return tiling.resident; });
  const Wanted raw = walks([](const WgmmaTiling& tiling) { return tiling.raw_weights && tiling.splits == 1; });
  const Wanted split = walks([](const WgmmaTiling& tiling) { return tiling.splits > 1; });
  const Wanted turns = walks([](const WgmmaTiling& tiling) { return tiling.share == Share::turns; });
  const Wanted steps = walks([](const WgmmaTiling& tiling) { return tiling.share == Share::steps; });
  const Wanted shared =
      walks([](const WgmmaTiling& tiling) { return tiling.share == Share::tile && tiling.images == 0; });
  const Wanted again = tensor([](const WgmmaTiling& tiling, const ConvSpec& spec) {
    return tiling.walks_pixels() && tiling.raw_weights && tiling.steps(spec) > tiling.stages && tiling.splits == 1;
  });
  const std::string both = " input_layout=nhwc output_layout=nhwc";
  run("tensor, walks",
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
          {"resident weights, fp16", "input=2,32,13,35 weight=40,32,3,3 padding=1 dtype=f16 residual" + both, 2,
           resident},
          {"weights as they lie", "input=2,40,15,17 weight=150,40,1,1 stride=2 padding=1,0 bias math=tf32" + both, 2,
           raw},
          {"weights as they lie, bf16, groups", "input=2,128,9,13 weight=72,64,1,1 groups=2 dtype=bf16" + both, 2, raw},
          {"stages that come again", "input=1,320,9,13 weight=72,320,1,1 math=tf32" + both, 2, again},
          {"a split reduction", "input=1,72,9,10 weight=24,72,3,3 padding=1 bias math=tf32" + both, 2, split},
          {"tiles in turn, to NCHW", "input=2,32,17,23 weight=70,32,3,3 padding=1 math=tf32 input_layout=nhwc", 2,
           turns},
          {"steps in turn, to NCHW", "input=2,48,17,23 weight=70,48,3,3 padding=1 math=tf32 input_layout=nhwc", 2,
           steps},
          {"shared tiles, to NCHW", "input=2,40,17,23 weight=70,40,3,3 padding=1 math=tf32 input_layout=nhwc", 2,
           shared},
      });
}

TEST(Quick, TensorTransposedPixels) {
  const Wanted any = transposed([](const WgmmaTiling& tiling) { return tiling.splits == 1; });
  const Wanted images = transposed([](const WgmmaTiling& tiling) { return tiling.images > 1 && tiling.splits == 1; });
  const Wanted resident = transposed([](const WgmmaTiling& tiling) { return tiling.resident; });
  const Wanted raw = transposed([](const WgmmaTiling& tiling) { return tiling.raw_weights && tiling.splits == 1; });
  const Wanted split = transposed([](const WgmmaTiling& tiling) { return tiling.splits > 1; });
  const Wanted turns = transposed([](const WgmmaTiling& tiling) { return tiling.share == Share::turns; });
  run("tensor, transposed pixels",
      {
          {"channels that end inside a slice", "input=2,22,13,35 weight=24,22,3,3 padding=1,2,2,0 bias math=tf32", 2,
           any},
          {"two slices", "input=3,8,13,35 weight=24,8,3,3 padding=1 residual math=tf32", 1, any},
          {"several tiles of slices", "input=2,68,5,15 weight=24,68,3,3 padding=1 math=tf32", 1, any},
          {"odd channels of fp16", "input=2,19,13,17 weight=40,19,3,3 padding=1 dtype=f16", 2, any},
          {"strides with residues, groups", "input=2,64,25,32 weight=48,32,3,5 groups=2 stride=2,3 padding=1 math=tf32",
           2, any},
          {"a stride whose rest is not read", "input=2,20,25,32 weight=40,20,1,1 stride=2,3 padding=1,2 math=tf32", 2,
           any},
          {"dilation that leaves a residue of rows",
           "input=2,20,25,32 weight=40,20,3,3 stride=2 dilation=4,1 padding=1 math=tf32", 2, any},
          {"several images", "input=7,32,7,6 weight=24,32,3,3 stride=2 padding=1 bias math=tf32", 2, images},
          {"resident weights", "input=2,32,13,35 weight=40,32,3,3 padding=1 dtype=bf16 residual", 2, resident},
          {"weights as they lie", "input=2,40,15,17 weight=150,40,1,1 stride=2 padding=1,0 bias math=tf32", 2, raw},
          {"a split reduction", "input=1,72,9,10 weight=24,72,3,3 padding=1 bias math=tf32", 2, split},
          {"tiles in turn", "input=2,32,17,23 weight=70,32,3,3 padding=1 math=tf32", 2, turns},
          {"to NHWC", "input=2,20,17,23 weight=70,20,3,3 padding=1 math=tf32 output_layout=nhwc", 2, any},
      });
}

}  // namespace
}  // namespace jitconv::test
