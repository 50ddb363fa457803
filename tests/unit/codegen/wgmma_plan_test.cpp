// Plans of the wgmma family: for which convolutions there are any, what stands in the way where there are none, and
// that the tiles that blocks walk over compute each output once.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "codegen/arithmetic.h"
#include "codegen/wgmma/store.h"
#include "unit/codegen/refusals.h"
#include "unit/codegen/tile_cover.h"
#include "unit/codegen/wgmma_candidates.h"

namespace jitconv::codegen {
namespace {

using test::note_of;
using test::Obstacle;
using test::wgmma_candidates;
using test::WgmmaCandidate;

// Each is the only thing in the way.
TEST(WgmmaPlan, SaysWhatStandsInTheWay) {
  const std::string plain = "input=8,64,56,56 weight=64,64,3,3";
  ASSERT_FALSE(wgmma_candidates(parse_spec(plain + " math=tf32")).empty());
  ASSERT_FALSE(wgmma_candidates(parse_spec(plain + " dtype=f16")).empty());
  ASSERT_FALSE(wgmma_candidates(parse_spec(plain)).empty());
  for (const Obstacle& one : {Obstacle{" math=ieee", "math is ieee, which allows fp32 FMA only"},
                              {" dtype=f16 math=ieee", "math is ieee, which allows fp32 FMA only"},
                              {" dtype=bf16 math=ieee", "math is ieee, which allows fp32 FMA only"},
                              {" math=tf32 alignment=8", "alignment is 8, stores need 16"},
                              {" dtype=f16 alignment=2", "alignment is 2, stores need 16"}})
    EXPECT_EQ(note_of("wgmma", plain + one.change), std::string("not possible: ") + one.words) << one.change;
  EXPECT_EQ(note_of("wgmma", "input=8,130,56,56 weight=130,10,3,3 groups=13 math=tf32"),
            "not possible: groups of 10 channels, at least 16 are needed to fill a multiplication, and these cannot be "
            "joined");
  EXPECT_EQ(note_of("wgmma", "input=1,2,40000,40000 weight=8,2,3,3 math=tf32"),
            "not possible: an image of 3200000000 elements, offsets inside one have 32 bits");
  EXPECT_EQ(note_of("wgmma", "input=1,32,4000,4100 weight=8,32,3,3 dilation=1500,1600 math=tf32"),
            "not possible: 3200 positions lie between rows of 900 outputs, so a run of 256 would hold too few outputs");
  EXPECT_EQ(note_of("wgmma", "input=1,64,5000,8000 weight=64,64,3,3 groups=1 math=tf32"),
            "not possible: an image of 2560000000 elements, offsets inside one have 32 bits");
  // Rows that runs compute, behind the last one that is stored.
  EXPECT_EQ(note_of("wgmma", "input=16,32,3,160 weight=64,32,1,1 stride=100000000,1 padding=0,100000000,0,0 math=tf32"),
            "not possible: input row 500000000 of 160 elements, offsets inside an image have 32 bits");
  EXPECT_EQ(
      note_of("wgmma", "input=1,64,1,1000 weight=16,64,1,9 padding=0,0,1073741323,1073741323 dtype=f16 math=tf32"),
      "not possible: 16 planes of 2147483638 outputs, both are counted with 32 bits");
}

TEST(WgmmaPlan, FewerChannelsThanAStepDoNotMakeAnImageLarge) {
  EXPECT_FALSE(wgmma_candidates(parse_spec("input=1,1,12000,12000 weight=64,1,3,3 math=tf32")).empty());
}

// Runs of whole images whose positions lie apart by less than whole vectors, which planes are.
TEST(WgmmaPlan, ImagesApartByOddPositionsAreStoredOneByOne) {
  for (const char* text : {"input=1024,32,8,7 weight=64,32,3,1 padding=1,0 math=tf32",
                           "input=1024,32,4,5 weight=64,32,3,1 padding=1,0 math=tf32",
                           "input=64,32,8,6 weight=64,32,4,1 padding=1,2,0,0 dtype=bf16 residual"}) {
    std::size_t apart = 0;
    for (const WgmmaCandidate& one : wgmma_candidates(parse_spec(text))) {
      const WgmmaGeometry g = one.geometry();
      const WgmmaStore store(g);
      const std::int64_t vector = 16 / store.written_bytes();
      if (one.tiling.tile.images < 2 || g.image_positions() % vector == 0) continue;
      EXPECT_EQ(store.store_width(), 1) << text;
      ++apart;
    }
    EXPECT_GT(apart, 0u) << text;
  }
}

// A wide stride brings a sector for each pixel, not all that it steps over.
TEST(WgmmaPlan, PricesOfHugeStridesStayPrices) {
  const ConvSpec spec =
      parse_spec("input=80,3,598,8 weight=111,3,335,4 stride=1,216587055 padding=10,11652129,0,0 math=tf32");
  for (const ConvPlan& plan : enumerate_plans(spec, parse_target("sm_90a"), SIZE_MAX)) EXPECT_GT(plan.cost, 0);
}

TEST(WgmmaPlan, AConvolutionWithoutOutputsHasOnePlan) {
  const ConvSpec spec = parse_spec("input=0,64,8,8 weight=64,64,1,1 math=tf32");
  const std::vector<ConvPlan> plans = enumerate_plans(spec, parse_target("sm_90a"), SIZE_MAX);
  ASSERT_EQ(plans.size(), 1u);
  EXPECT_EQ(plans.front(), make_plan(spec, parse_target("sm_90a")));
}

TEST(WgmmaPlan, IsForSm90aAlone) {
  for (const char* arch : {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100a", "sm_120a"}) {
    EXPECT_EQ(
        note_of("wgmma", "input=8,64,56,56 weight=64,64,3,3 math=tf32", arch),
        std::string("not possible: warpgroup multiplications need sm_90a, the target is ") + parse_target(arch).arch());
  }
}

TEST(WgmmaPlan, HasCandidatesForEveryKindOfShape) {
  for (const char* text : test::kWgmmaSpecs) EXPECT_FALSE(wgmma_candidates(parse_spec(text)).empty()) << text;
}

// A dense convolution that tensor cores may compute is one that they do compute, hundreds of channels or few.
TEST(WgmmaPlan, IsChosenWhereItIsAllowed) {
  for (const char* text :
       {"input=8,64,512,1024 weight=128,64,3,3 math=tf32", "input=32,256,14,14 weight=256,256,3,3 padding=1 dtype=bf16",
        "input=16,64,512,512 weight=128,64,1,1 dtype=f16"})
    EXPECT_EQ(to_string(make_plan(parse_spec(text), parse_target("sm_90a")).family()), "wgmma") << text;
}

// Few tiles and many steps: the reduction is what is left to share.
TEST(WgmmaPlan, SplitsWhatLeavesSmsWithoutATile) {
  bool split = false;
  for (const WgmmaCandidate& one :
       wgmma_candidates(parse_spec("input=1,512,14,14 weight=512,512,3,3 padding=1 math=tf32")))
    split |= one.tiling.split_k > 1;
  EXPECT_TRUE(split);
  for (const WgmmaCandidate& one : wgmma_candidates(parse_spec("input=8,64,512,1024 weight=128,64,3,3 math=tf32")))
    ASSERT_EQ(one.tiling.split_k, 1) << "there are tiles for all";
}

TEST(WgmmaPlan, BlocksAreNoMoreThanTiles) {
  for (const char* text : test::kWgmmaSpecs) {
    for (const WgmmaCandidate& one : wgmma_candidates(parse_spec(text))) {
      ASSERT_GE(one.plan.convolution().launch.blocks, 1u) << text;
      ASSERT_LE(one.plan.convolution().launch.blocks, one.geometry().tiles()) << text;
      ASSERT_EQ(one.plan.convolution().launch.min_blocks_per_sm, 1) << "a block takes all of an SM's registers";
      // Blocks without a tile would be idle, and tiles are dealt out one by one.
      ASSERT_LE(one.plan.convolution().launch.blocks, static_cast<unsigned>(one.plan.target.sm_count)) << text;
    }
  }
}

/// Restates Tile and the store of templates/wgmma/kernel.cu.in: the outputs that the blocks store, for one split.
bool stores_each_output_once(const WgmmaCandidate& one) {
  const WgmmaTiling& t = one.tiling;
  const WgmmaGeometry g = one.geometry();
  const Problem& problem = one.problem;
  test::TileCover cover(one.plan.spec);
  const TensorShape& out = cover.shape();
  const std::int64_t plane = out.h * out.w, sector = g.sector_elements();
  for (std::int64_t number = 0; number < g.tiles() / t.split_k; ++number) {
    std::int64_t rest = number;
    const auto take = [&rest](std::int64_t extent) {
      const std::int64_t digit = rest % extent;
      rest /= extent;
      return digit;
    };
    const std::int64_t k_tile = take(g.tiles_k()),
                       first_output = t.tile.images > 0 ? 0 : take(g.tiles_of_plane()) * t.runs() * t.tile.window,
                       group = take(problem.groups);
    using Schedule = WgmmaTiling::Schedule;
    for (int consumer = 0; consumer < (t.schedule == Schedule::pingpong ? 1 : 2); ++consumer) {
      const std::int64_t k_consumer = t.tile.channels == 128 ? consumer * 64 : 0, run = t.runs() == 1 ? 0 : consumer;
      const std::int64_t run_first = first_output + run * t.tile.window;
      for (std::int64_t k = k_tile * t.tile.channels + k_consumer, i = 0; i < 64 && k < problem.k; ++i, ++k) {
        if (t.schedule == Schedule::sliced_k && i / 8 % 2 != consumer) continue;
        const std::int64_t channel = group * problem.k + k;
        const std::int64_t first_image = (rest * t.runs() + run) * t.tile.images;
        for (std::int64_t n = first_image; n < std::min(first_image + t.tile.images, out.n); ++n)
          for (std::int64_t o = 0; o < plane; ++o) cover.add(n, channel, o / out.w, o % out.w);
        if (t.tile.images > 0) continue;
        for (std::int64_t at = run_first; t.stores_boxes() && at < run_first + t.tile.columns; ++at)
          if (at / g.run_row() < out.h && at % g.run_row() < out.w)
            cover.add(rest, channel, at / g.run_row(), at % g.run_row());
        if (t.stores_boxes()) continue;
        const std::int64_t late = positive_modulo(-(rest * out.c + channel) * plane, sector);
        const std::int64_t end = std::min(plane, run_first + t.tile.window + late);
        for (std::int64_t o = run_first == 0 ? 0 : run_first + late; o < end; ++o)
          cover.add(rest, channel, o / out.w, o % out.w);
      }
    }
  }
  return cover.each_once();
}

RC_GTEST_PROP(WgmmaPlanProperty, EachOutputIsStoredOnce, ()) {
  test::SpecLimits limits;
  limits.batch = 2, limits.channels_per_group = 150, limits.groups = 2, limits.outputs = 20;
  const ConvSpec spec = test::for_tensor_cores(*test::valid_specs(limits));
  const TensorShape out = output_shape(spec);
  RC_PRE(out.n * out.c * out.h * out.w <= test::kFewOutputs);
  const std::vector<WgmmaCandidate> found = wgmma_candidates(spec);
  if (found.empty()) return;
  RC_ASSERT(stores_each_output_once(found.front()));
  RC_ASSERT(stores_each_output_once(found[*rc::gen::inRange<std::size_t>(0, found.size())]));
}

}  // namespace
}  // namespace jitconv::codegen
