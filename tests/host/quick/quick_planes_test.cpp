// Small kernels of 1x1 filters, see quick_test.cpp: pixels as boxes of NCHW planes, an MN-major operand; weights of the
// pointwise family that come with each step; and NHWC channels that fill no whole 16 bytes.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>

#include "codegen/wgmma/store.h"
#include "host/quick/quick.h"

namespace jitconv::test {
namespace {

using codegen::PointwiseTiling;
using codegen::WgmmaGeometry;
using codegen::WgmmaStore;
using codegen::WgmmaTiling;
using Schedule = WgmmaTiling::Schedule;

Wanted planes(std::function<bool(const WgmmaTiling&)> wanted) {
  return wgmma(
      [wanted = std::move(wanted)](const WgmmaTiling& tiling) { return tiling.uses_planes() && wanted(tiling); });
}

TEST(Quick, WgmmaPlanes) {
  const auto one_run = [](const WgmmaTiling& t) { return t.split_k == 1 && t.runs() == 1 && t.tile.images == 0; };
  const Wanted any = planes(one_run);
  const Wanted two_runs = planes([](const WgmmaTiling& t) { return t.runs() == 2 && t.split_k == 1; });
  const Wanted images = planes([](const WgmmaTiling& t) { return t.tile.images > 1 && t.split_k == 1; });
  const Wanted large_images = planes([](const WgmmaTiling& t) { return t.tile.images == 2 && t.runs() == 1; });
  const Wanted image = planes([](const WgmmaTiling& t) { return t.tile.images == 1 && t.split_k == 1; });
  const Wanted resident = planes([](const WgmmaTiling& t) { return t.keeps_weights(); });
  const Wanted unpacked = planes([](const WgmmaTiling& t) { return !t.packs_weights() && t.split_k == 1; });
  const Wanted split = planes([](const WgmmaTiling& t) { return t.split_k > 1; });
  const Wanted pingpong = planes([](const WgmmaTiling& t) { return t.schedule == Schedule::pingpong; });
  const Wanted small = planes([&](const WgmmaTiling& t) { return one_run(t) && t.pipeline.slices == 2; });
  const Wanted part = planes([&](const WgmmaTiling& t) { return one_run(t) && t.tile.columns % 64 != 0; });
  run("wgmma, planes",
      {
          {"channels that end inside a step", "input=2,72,17,24 weight=150,72,1,1 bias dtype=bf16", 2, any},
          {"a run that ends inside a part", "input=2,64,17,24 weight=72,64,1,1 bias activation=relu dtype=f16", 2,
           part},
          {"steps of two slices", "input=2,40,17,24 weight=72,40,1,1 residual dtype=bf16", 1, small},
          {"two runs", "input=3,64,13,40 weight=40,64,1,1 bias dtype=bf16", 2, two_runs},
          {"an image", "input=3,40,7,24 weight=72,40,1,1 dtype=bf16", 1, image},
          {"several images", "input=7,40,8,8 weight=72,40,1,1 bias residual dtype=f16", 2, images},
          {"images of two parts", "input=300,40,8,16 weight=40,40,1,1 dtype=bf16", 1, large_images},
          {"resident weights", "input=2,40,17,24 weight=72,40,1,1 dtype=bf16", 1, resident},
          {"weights as they lie, groups", "input=2,256,9,24 weight=144,128,1,1 groups=2 dtype=bf16", 2, unpacked},
          {"a split reduction", "input=1,200,9,16 weight=72,200,1,1 bias dtype=bf16", 2, split},
          {"tiles in turn", "input=2,72,17,24 weight=72,72,1,1 bias dtype=bf16", 2, pingpong},
          {"to NHWC", "input=2,72,17,24 weight=72,72,1,1 bias dtype=bf16 output_layout=nhwc", 2, any},
      });
}

// Planes start at two, four or eight places of 16 bytes.
TEST(Quick, WgmmaAlignedPlanes) {
  const auto aligned = [](std::function<bool(const WgmmaTiling&)> wanted) {
    return wgmma(
        [wanted = std::move(wanted)](const WgmmaTiling& tiling) { return tiling.aligns_pixels() && wanted(tiling); });
  };
  const auto whole = [](const WgmmaTiling& t) { return t.split_k == 1 && t.runs() == 1; };
  const Wanted windows = aligned([&](const WgmmaTiling& t) { return whole(t) && t.tile.images == 0; });
  const Wanted two_runs = aligned([](const WgmmaTiling& t) { return t.runs() == 2 && t.tile.images == 0; });
  const Wanted image = aligned([&](const WgmmaTiling& t) { return whole(t) && t.tile.images == 1; });
  const Wanted images = aligned([&](const WgmmaTiling& t) { return whole(t) && t.tile.images > 2; });
  const Wanted runs_of_images = aligned([](const WgmmaTiling& t) { return t.runs() == 2 && t.tile.images == 2; });
  const Wanted small = aligned([&](const WgmmaTiling& t) { return whole(t) && t.pipeline.slices == 2; });
  const Wanted resident = aligned([](const WgmmaTiling& t) { return t.keeps_weights(); });
  const Wanted ahead = aligned([&](const WgmmaTiling& t) { return whole(t) && t.producer.copies_ahead == 2; });
  const Wanted split = aligned([](const WgmmaTiling& t) { return t.split_k > 1; });
  const Wanted pingpong = aligned([](const WgmmaTiling& t) { return t.schedule == Schedule::pingpong; });
  const Wanted sliced = aligned([](const WgmmaTiling& t) { return t.schedule == Schedule::sliced_k; });
  run("wgmma, aligned planes",
      {
          {"windows, two places", "input=2,72,18,22 weight=150,72,1,1 bias dtype=bf16", 2, windows},
          {"windows, four places", "input=2,72,15,26 weight=72,72,1,1 bias activation=relu dtype=f16", 2, windows},
          {"windows, eight places", "input=2,200,17,21 weight=72,200,1,1 dtype=bf16", 2, windows},
          {"two runs", "input=3,64,15,21 weight=40,64,1,1 bias dtype=bf16", 2, two_runs},
          {"an image", "input=3,40,14,14 weight=72,40,1,1 residual dtype=bf16", 1, image},
          {"images", "input=17,40,7,7 weight=72,40,1,1 bias dtype=f16", 2, images},
          {"two runs of images", "input=7,72,6,10 weight=40,72,1,1 dtype=bf16", 2, runs_of_images},
          {"steps of two slices", "input=7,16,7,9 weight=72,16,1,1 dtype=bf16", 1, small},
          {"resident weights", "input=2,40,17,18 weight=72,40,1,1 dtype=bf16", 1, resident},
          {"two steps ahead, groups", "input=2,256,9,20 weight=144,128,1,1 groups=2 dtype=bf16", 2, ahead},
          {"a split reduction", "input=1,200,9,18 weight=72,200,1,1 bias dtype=bf16", 2, split},
          {"tiles in turn", "input=2,72,18,22 weight=72,72,1,1 bias dtype=bf16", 2, pingpong},
          {"steps in turn", "input=2,200,14,14 weight=72,200,1,1 bias dtype=bf16", 2, sliced},
          {"to NHWC", "input=2,72,18,22 weight=72,72,1,1 bias dtype=bf16 output_layout=nhwc", 2, windows},
          {"dx", "input=2,72,18,22 weight=136,72,1,1 dtype=bf16 operation=data_gradient", 2, windows},
      });
}

// Planes of floats that start at two or four places of 16 bytes, with filters and gradients of any kind.
TEST(Quick, WgmmaPeriodsOfPlanes) {
  const auto copied = [](std::function<bool(const WgmmaTiling&)> wanted) {
    return wgmma([wanted = std::move(wanted)](const WgmmaTiling& tiling) {
      return tiling.converts_pixels() && tiling.tile.images == 0 && wanted(tiling);
    });
  };
  const auto whole = [](const WgmmaTiling& t) { return t.split_k == 1 && t.runs() == 1; };
  const Wanted one_run = copied(whole);
  const Wanted two_runs = copied([](const WgmmaTiling& t) { return t.runs() == 2; });
  const Wanted ahead = copied([&](const WgmmaTiling& t) { return whole(t) && t.producer.copies_ahead == 2; });
  const Wanted all_rows = copied([&](const WgmmaTiling& t) { return whole(t) && t.pipeline.filter_rows == 3; });
  const Wanted registers = copied([](const WgmmaTiling& t) { return t.weights == WgmmaTiling::Weights::unpacked; });
  const Wanted sliced = copied([](const WgmmaTiling& t) { return t.schedule == Schedule::sliced_k; });
  run("wgmma, periods of planes",
      {
          {"two places", "input=2,40,9,26 weight=72,40,1,1 bias math=tf32", 2, one_run},
          {"four places, two runs", "input=2,36,15,21 weight=40,36,1,1 bias activation=relu math=tf32", 2, two_runs},
          {"a row each step", "input=2,20,11,13 weight=72,20,3,3 padding=1 math=tf32", 2, ahead},
          {"all rows each step", "input=2,20,11,13 weight=72,20,3,3 padding=1 bias math=tf32", 2, all_rows},
          {"strides and dilations", "input=2,24,17,19 weight=72,24,3,3 stride=2,3 dilation=3,2 padding=2 math=tf32", 2,
           one_run},
          {"one long row", "input=1,32,1,1003 weight=64,32,1,5 padding=0,2 math=tf32", 2, one_run},
          {"groups", "input=2,96,9,11 weight=144,48,1,3 groups=2 padding=0,1 math=tf32", 2, one_run},
          {"weights in registers", "input=2,64,9,11 weight=72,64,1,1 bias math=tf32", 2, registers},
          {"steps in turn", "input=2,128,9,11 weight=72,128,1,1 math=tf32", 2, sliced},
          {"pairs of TF32 numbers", "input=2,64,9,11 weight=72,64,1,1 bias", 2, one_run},
          {"dx", "input=2,72,10,13 weight=40,72,3,3 padding=1 math=tf32 operation=data_gradient", 2, one_run},
          {"dx of a stride", "input=2,72,21,19 weight=40,72,3,3 stride=2 padding=1 math=tf32 operation=data_gradient",
           2, one_run},
      });
}

TEST(Quick, WgmmaStoresPlanes) {
  const auto stored = [](std::function<bool(const WgmmaTiling&)> wanted) {
    return wgmma([wanted = std::move(wanted)](const WgmmaGeometry& geometry) {
      return WgmmaStore(geometry).stores_planes() && wanted(geometry.tiling());
    });
  };
  const Wanted image = stored([](const WgmmaTiling& t) { return t.tile.images == 1; });
  const Wanted images = stored([](const WgmmaTiling& t) { return t.tile.images > 1 && t.runs() == 1; });
  const Wanted two_runs = stored([](const WgmmaTiling& t) { return t.tile.images > 1 && t.runs() == 2; });
  const Wanted pingpong = stored([](const WgmmaTiling& t) { return t.schedule == Schedule::pingpong; });
  const std::string nhwc = " input_layout=nhwc";
  run("wgmma, planes of eight channels",
      {
          {"an even plane, groups", "input=3,64,5,6 weight=48,32,1,1 groups=2 bias activation=relu dtype=bf16", 2,
           image},
          {"an odd plane, channels that fill no tile", "input=5,40,7,7 weight=72,40,1,1 dtype=f16", 2, image},
          {"several images, the last tile has fewer", "input=7,40,7,7 weight=136,40,1,1 bias dtype=bf16" + nhwc, 2,
           images},
          {"several images of even planes", "input=11,40,6,6 weight=72,40,1,1 dtype=f16" + nhwc, 2, images},
          {"two runs of several images", "input=11,40,3,5 weight=64,40,1,1 bias dtype=bf16" + nhwc, 2, two_runs},
          {"images whose rows of a filter's padding lie between",
           "input=7,40,5,3 weight=72,40,3,1 padding=1,1,0,0 dtype=bf16" + nhwc, 2, images},
          {"tiles in turn", "input=9,40,7,7 weight=72,40,1,1 dtype=f16" + nhwc, 2, pingpong},
      });
}

TEST(Quick, PointwiseStreamedWeights) {
  const auto streamed = [](std::function<bool(const PointwiseTiling&)> wanted) {
    return [wanted = std::move(wanted)](const codegen::ConvPlan& plan) {
      const auto* tiling = plan.tiling<PointwiseTiling>();
      return tiling != nullptr && tiling->streams_weights && wanted(*tiling);
    };
  };
  const Wanted whole = streamed([](const PointwiseTiling& t) { return t.splits == 1; });
  // One slab, so that any number of blocks can share the tiles.
  const Wanted one_slab =
      streamed([](const PointwiseTiling& t) { return t.splits == 1 && t.block_k() >= 72 && t.lane_pixels == 4; });
  const Wanted shared = streamed([](const PointwiseTiling& t) { return t.splits == 1 && t.consumers_k == 2; });
  const Wanted split = streamed([](const PointwiseTiling& t) { return t.splits > 1; });
  run("pointwise, streamed weights",
      {
          {"rows of 128 bytes", "input=3,96,9,20 weight=72,96,1,1 bias activation=relu math=tf32", 2, whole},
          {"rows of 64 bytes", "input=3,112,9,20 weight=72,112,1,1 math=tf32", 2, whole},
          {"stages that come again, several tiles of a block", "input=5,320,9,20 weight=72,320,1,1 bias math=tf32", 2,
           one_slab, "sm_90a", 2},
          {"channels shared", "input=3,96,9,20 weight=270,96,1,1 residual math=tf32", 2, shared},
          {"groups", "input=3,192,9,20 weight=72,96,1,1 groups=2 bias math=tf32", 2, whole},
          {"a split reduction", "input=1,320,6,8 weight=24,320,1,1 bias math=tf32", 2, split},
      });
}

TEST(Quick, PointwiseGatheredPixels) {
  using Pixels = PointwiseTiling::Pixels;
  const auto gathered = [](Pixels pixels, std::function<bool(const PointwiseTiling&)> wanted) {
    return [pixels, wanted = std::move(wanted)](const codegen::ConvPlan& plan) {
      const auto* tiling = plan.tiling<PointwiseTiling>();
      return tiling != nullptr && tiling->tile == pixels && wanted(*tiling);
    };
  };
  const auto whole = [](const PointwiseTiling& t) { return t.splits == 1; };
  const Wanted images = gathered(Pixels::images, whole), rows = gathered(Pixels::rows, whole);
  const Wanted kept = gathered(Pixels::images, [](const auto& t) { return t.splits == 1 && !t.streams_weights; });
  const Wanted shared = gathered(Pixels::rows, [](const auto& t) { return t.splits == 1 && t.consumers_k == 2; });
  const Wanted split = gathered(Pixels::images, [](const auto& t) { return t.splits > 1; });
  run("pointwise, gathered pixels",
      {
          {"images of no whole vectors, the last tile has fewer", "input=7,64,7,7 weight=72,64,1,1 bias math=tf32", 2,
           images},
          {"an image", "input=3,64,14,14 weight=72,64,1,1 bias activation=relu math=tf32", 2, images},
          {"images of a stride, weights that stay", "input=5,48,13,9 weight=40,48,1,1 stride=2,3 math=tf32", 2, kept},
          {"rows", "input=2,96,39,32 weight=72,96,1,1 stride=2 bias math=tf32", 2, rows},
          {"rows, groups, channels shared", "input=2,96,25,24 weight=280,48,1,1 groups=2 stride=3,2 math=tf32", 2,
           shared},
          {"a split reduction", "input=2,320,7,7 weight=24,320,1,1 bias math=tf32", 2, split},
      });
}

TEST(Quick, WgmmaChannelsOfNoWholeSlices) {
  const Wanted loaded = wgmma([](const WgmmaGeometry& geometry) {
    return geometry.tiling().loads_pixels() && geometry.loads_vectors() && geometry.load_bytes() < 16;
  });
  const std::string nhwc = " input_layout=nhwc output_layout=nhwc";
  run("wgmma, channels of no whole slices",
      {
          {"loads of 8 bytes", "input=2,38,7,9 weight=61,38,1,1 bias math=tf32" + nhwc, 2, loaded},
          {"loads of 4 bytes", "input=2,37,7,9 weight=24,37,3,3 padding=1 math=tf32" + nhwc, 2, loaded},
          {"loads of 8 bytes, 16-bit", "input=2,76,7,9 weight=106,76,1,1 dtype=bf16" + nhwc, 2, loaded},
          {"loads of 4 bytes, 16-bit", "input=2,74,7,9 weight=40,74,1,1 stride=2 dtype=f16" + nhwc, 2, loaded},
          {"loads of 2 bytes", "input=2,75,7,9 weight=40,75,3,3 padding=1 residual dtype=bf16" + nhwc, 2, loaded},
          {"groups", "input=2,44,7,9 weight=40,22,1,1 groups=2 bias math=tf32" + nhwc, 2, loaded},
      });
}

}  // namespace
}  // namespace jitconv::test
