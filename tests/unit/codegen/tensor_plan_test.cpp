// Plans of the tensor family: for which convolutions there are any, what stands in the way where there are none, and
// that the tiles that blocks walk over compute each output once.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "codegen/arithmetic.h"
#include "unit/codegen/tensor_candidates.h"
#include "unit/codegen/tile_cover.h"

namespace jitconv::codegen {
namespace {

using test::tensor_candidates;
using test::TensorCandidate;

/// What the plan's notes say of the tensor family; empty if nothing.
std::string tensor_note(const std::string& spec, const char* arch = "sm_90a") {
  std::string text;
  for (const Note& note : make_plan(parse_spec(spec), parse_target(arch)).notes)
    if (note.topic == "tensor") text += note.text;
  return text;
}

struct Obstacle {
  const char *change, *words;
};

// Each is the only thing in the way.
TEST(TensorPlan, SaysWhatStandsInTheWay) {
  const std::string plain = "input=8,64,56,56 weight=64,64,3,3";
  ASSERT_FALSE(tensor_candidates(parse_spec(plain + " math=tf32")).empty());
  ASSERT_FALSE(tensor_candidates(parse_spec(plain + " dtype=f16")).empty());
  for (const Obstacle& one : {Obstacle{"", "math is fp32; fp32 tensors take tensor cores only with tf32"},
                              {" math=ieee", "math is ieee; fp32 tensors take tensor cores only with tf32"},
                              {" dtype=f16 math=ieee", "math is ieee, which allows fp32 FMA only"},
                              {" dtype=bf16 math=ieee", "math is ieee, which allows fp32 FMA only"},
                              {" math=tf32 alignment=8", "alignment is 8, stores need 16"},
                              {" dtype=f16 alignment=2", "alignment is 2, stores need 16"}})
    EXPECT_EQ(tensor_note(plain + one.change), std::string("not possible: ") + one.words) << one.change;
  EXPECT_EQ(tensor_note("input=8,64,56,56 weight=64,8,3,3 groups=8 math=tf32"),
            "not possible: groups of 8 channels, at least 16 are needed to fill a multiplication");
  EXPECT_EQ(tensor_note("input=1,2,40000,40000 weight=8,2,3,3 math=tf32"),
            "not possible: an image of 3200000000 elements, offsets inside one have 32 bits");
  EXPECT_EQ(tensor_note("input=1,8,4000,4100 weight=8,8,3,3 dilation=1500,1600 math=tf32"),
            "not possible: 3200 positions lie between rows of 900 outputs, so a run of 256 would hold too few outputs");
  EXPECT_EQ(tensor_note("input=1,64,5000,8000 weight=64,64,3,3 groups=1 math=tf32"),
            "not possible: an image of 2560000000 elements, offsets inside one have 32 bits");
  // Rows that runs compute, behind the last one that is stored.
  EXPECT_EQ(tensor_note("input=16,32,3,160 weight=64,32,1,1 stride=100000000,1 padding=0,100000000,0,0 math=tf32"),
            "not possible: input row 500000000 of 160 elements, offsets inside an image have 32 bits");
  EXPECT_EQ(tensor_note("input=1,64,1,1000 weight=16,64,1,9 padding=0,0,1073741323,1073741323 dtype=f16 math=tf32"),
            "not possible: 16 planes of 2147483638 outputs, both are counted with 32 bits");
}

TEST(TensorPlan, FewerChannelsThanAStepDoNotMakeAnImageLarge) {
  EXPECT_FALSE(tensor_candidates(parse_spec("input=1,1,12000,12000 weight=64,1,3,3 math=tf32")).empty());
}

// Runs of whole images whose positions lie apart by less than whole vectors, which planes are.
TEST(TensorPlan, ImagesApartByOddPositionsAreStoredOneByOne) {
  for (const char* text : {"input=1024,32,8,7 weight=64,32,3,1 padding=1,0 math=tf32",
                           "input=1024,32,4,5 weight=64,32,3,1 padding=1,0 math=tf32",
                           "input=64,32,8,6 weight=64,32,4,1 padding=1,2,0,0 dtype=bf16 residual"}) {
    std::size_t apart = 0;
    for (const TensorCandidate& one : tensor_candidates(parse_spec(text))) {
      const WgmmaTiling& t = one.tiling;
      const std::int64_t vector = 16 / t.written_bytes(one.spec);
      if (t.images < 2 || t.image_positions(one.spec) % vector == 0) continue;
      EXPECT_EQ(t.store_width(one.spec), 1) << text;
      ++apart;
    }
    EXPECT_GT(apart, 0u) << text;
  }
}

// A wide stride brings a sector for each pixel, not all that it steps over.
TEST(TensorPlan, PricesOfHugeStridesStayPrices) {
  const ConvSpec spec =
      parse_spec("input=80,3,598,8 weight=111,3,335,4 stride=1,216587055 padding=10,11652129,0,0 math=tf32");
  for (const ConvPlan& plan : enumerate_plans(spec, parse_target("sm_90a"), SIZE_MAX)) EXPECT_GT(plan.cost, 0);
}

TEST(TensorPlan, AConvolutionWithoutOutputsHasOnePlan) {
  const ConvSpec spec = parse_spec("input=0,64,8,8 weight=64,64,1,1 math=tf32");
  const std::vector<ConvPlan> plans = enumerate_plans(spec, parse_target("sm_90a"), SIZE_MAX);
  ASSERT_EQ(plans.size(), 1u);
  EXPECT_EQ(plans.front(), make_plan(spec, parse_target("sm_90a")));
}

TEST(TensorPlan, IsForSm90aAlone) {
  for (const char* arch : {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100a", "sm_120a"}) {
    EXPECT_EQ(
        tensor_note("input=8,64,56,56 weight=64,64,3,3 math=tf32", arch),
        std::string("not possible: warpgroup multiplications need sm_90a, the target is ") + parse_target(arch).arch());
  }
}

TEST(TensorPlan, HasCandidatesForEveryKindOfShape) {
  for (const char* text : test::kTensorSpecs) EXPECT_FALSE(tensor_candidates(parse_spec(text)).empty()) << text;
}

// A dense convolution that tensor cores may compute is one that they do compute, hundreds of channels or few.
TEST(TensorPlan, IsChosenWhereItIsAllowed) {
  for (const char* text :
       {"input=8,64,512,1024 weight=128,64,3,3 math=tf32", "input=32,256,14,14 weight=256,256,3,3 padding=1 dtype=bf16",
        "input=16,64,512,512 weight=128,64,1,1 dtype=f16"})
    EXPECT_EQ(to_string(make_plan(parse_spec(text), parse_target("sm_90a")).family), "tensor") << text;
}

// Few tiles and many steps: the reduction is what is left to share.
TEST(TensorPlan, SplitsWhatLeavesSmsWithoutATile) {
  bool split = false;
  for (const TensorCandidate& one :
       tensor_candidates(parse_spec("input=1,512,14,14 weight=512,512,3,3 padding=1 math=tf32")))
    split |= one.tiling.splits > 1;
  EXPECT_TRUE(split);
  for (const TensorCandidate& one : tensor_candidates(parse_spec("input=8,64,512,1024 weight=128,64,3,3 math=tf32")))
    ASSERT_EQ(one.tiling.splits, 1) << "there are tiles for all";
}

TEST(TensorPlan, BlocksAreNoMoreThanTiles) {
  for (const char* text : test::kTensorSpecs) {
    for (const TensorCandidate& one : tensor_candidates(parse_spec(text))) {
      ASSERT_GE(one.plan.convolution().launch.blocks, 1u) << text;
      ASSERT_LE(one.plan.convolution().launch.blocks, one.tiling.tiles(one.spec)) << text;
      ASSERT_EQ(one.plan.convolution().launch.min_blocks_per_sm, 1) << "a block takes all of an SM's registers";
      // Blocks without a tile would be idle, and tiles are dealt out one by one.
      ASSERT_LE(one.plan.convolution().launch.blocks, static_cast<unsigned>(one.plan.target.sm_count)) << text;
    }
  }
}

/// Restates Tile and the store of templates/tensor.cu.in: the outputs that the blocks store, for one split.
bool stores_each_output_once(const TensorCandidate& one) {
  const WgmmaTiling& t = one.tiling;
  const ConvSpec& spec = one.spec;
  test::TileCover cover(spec);
  const TensorShape& out = cover.shape();
  const std::int64_t group_k = spec.weight.k / spec.groups, plane = out.h * out.w;
  const std::int64_t sector = WgmmaTiling::sector_elements(spec);
  for (std::int64_t number = 0; number < t.tiles(spec) / t.splits; ++number) {
    std::int64_t rest = number;
    const auto take = [&rest](std::int64_t extent) {
      const std::int64_t digit = rest % extent;
      rest /= extent;
      return digit;
    };
    const std::int64_t k_tile = take(t.tiles_k(spec)),
                       first_output = t.images > 0 ? 0 : take(t.tiles_of_plane(spec)) * t.runs() * t.window,
                       group = take(spec.groups);
    using Share = WgmmaTiling::Share;
    for (int consumer = 0; consumer < (t.share == Share::turns ? 1 : 2); ++consumer) {
      const std::int64_t k_consumer = t.block_k == 128 ? consumer * 64 : 0, run = t.runs() == 1 ? 0 : consumer;
      const std::int64_t run_first = first_output + run * t.window;
      for (std::int64_t k = k_tile * t.block_k + k_consumer, i = 0; i < 64 && k < group_k; ++i, ++k) {
        if (t.share == Share::steps && i / 8 % 2 != consumer) continue;
        const std::int64_t channel = group * group_k + k;
        const std::int64_t first_image = (rest * t.runs() + run) * t.images;
        for (std::int64_t n = first_image; n < std::min(first_image + t.images, out.n); ++n)
          for (std::int64_t o = 0; o < plane; ++o) cover.add(n, channel, o / out.w, o % out.w);
        if (t.images > 0) continue;
        for (std::int64_t at = run_first; t.stores_boxes() && at < run_first + t.columns; ++at)
          if (at / t.run_row(spec) < out.h && at % t.run_row(spec) < out.w)
            cover.add(rest, channel, at / t.run_row(spec), at % t.run_row(spec));
        if (t.stores_boxes()) continue;
        const std::int64_t late = positive_modulo(-(rest * out.c + channel) * plane, sector);
        const std::int64_t end = std::min(plane, run_first + t.window + late);
        for (std::int64_t o = run_first == 0 ? 0 : run_first + late; o < end; ++o)
          cover.add(rest, channel, o / out.w, o % out.w);
      }
    }
  }
  return cover.each_once();
}

RC_GTEST_PROP(TensorPlanProperty, EachOutputIsStoredOnce, ()) {
  test::SpecLimits limits;
  limits.batch = 2, limits.channels_per_group = 150, limits.groups = 2, limits.outputs = 20;
  const ConvSpec spec = test::for_tensor_cores(*test::valid_specs(limits));
  const TensorShape out = output_shape(spec);
  RC_PRE(out.n * out.c * out.h * out.w <= test::kFewOutputs);
  const std::vector<TensorCandidate> found = tensor_candidates(spec);
  if (found.empty()) return;
  RC_ASSERT(stores_each_output_once(found.front()));
  RC_ASSERT(stores_each_output_once(found[*rc::gen::inRange<std::size_t>(0, found.size())]));
}

}  // namespace
}  // namespace jitconv::codegen
