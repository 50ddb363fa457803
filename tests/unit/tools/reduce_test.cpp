// Reduction: what a smaller convolution must have in common with the one asked for, and what it must still show.
#include "tools/reduce.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <optional>
#include <set>
#include <sstream>
#include <string>

#include "codegen/phases.h"
#include "codegen/source.h"
#include "codegen/wgmma/geometry.h"
#include "codegen/wgmma/store.h"
#include "jitconv/error.h"
#include "support/random_specs.h"
#include "tools/documented.h"
#include "unit/tools/reduce_test_support.h"

namespace jitconv::tools {
namespace {

using codegen::DepthwiseTiling;
using codegen::DirectTiling;
using codegen::FallbackTiling;
using codegen::WgmmaTiling;

/// The geometry of a plan of the wgmma family, which must outlive it.
codegen::WgmmaGeometry geometry_of(const codegen::ConvPlan& plan) {
  return {plan.convolution().problem, std::get<WgmmaTiling>(plan.convolution().tiling)};
}

TEST(Reduce, EveryDocumentedConfigurationKeepsItsKernel) {
  for (const DocumentedConfiguration& configuration : documented_configurations()) {
    SCOPED_TRACE(configuration.name);
    const Reduction small = reduce(configuration.spec, kTarget, kDocumented);
    const codegen::ConvPlan full = codegen::make_plan(configuration.spec, kTarget);
    EXPECT_EQ(small.plan.spec, with_extents_of(full.spec, small.plan.spec));
    EXPECT_EQ(small.plan.convolution().tiling, full.convolution().tiling);
    EXPECT_EQ(small.plan.convolution().launch.shared_bytes, full.convolution().launch.shared_bytes);
    EXPECT_EQ(small.plan.convolution().launch.threads, full.convolution().launch.threads);
    EXPECT_GT(kernel_lines(codegen::generate(full)).size(), 50u);
    EXPECT_EQ(difference(small.plan, full), "");
  }
}

TEST(Reduce, DocumentedConfigurationsFitTheLimitOrSayThatTheyCannot) {
  for (const DocumentedConfiguration& configuration : documented_configurations()) {
    const Reduction small = reduce(configuration.spec, kTarget, kDocumented);
    const codegen::ConvPlan full = codegen::make_plan(configuration.spec, kTarget);
    EXPECT_EQ(small.reduced, executed_multiply_adds(full) > kDocumented.as_given) << configuration.name;
    EXPECT_EQ(small.multiply_adds, executed_multiply_adds(small.plan));
    if (small.multiply_adds <= kDocumented.most) continue;
    // One tile in each direction, or two where one alone would be half empty, and that is said.
    EXPECT_LE(small.tiles[0] * small.tiles[1] * small.tiles[2], 2) << configuration.name;
    EXPECT_NE(small.note.find("cannot be made fewer"), std::string::npos) << small.note;
  }
}

TEST(Reduce, WithoutALimitEverythingThereIsToSeeIsShown) {
  // Two tiles in each direction; the last of Q as ragged as 1022 = 3 * 256 + 254 leaves it.
  const Reduction plain = reduced("input=16,16,1024,1024 weight=128,16,3,3 math=ieee", kNoLimit);
  const auto& direct = std::get<DirectTiling>(plain.plan.convolution().tiling);
  EXPECT_EQ(plain.tiles, (std::array<std::int64_t, 3>{2, 2, 2}));
  EXPECT_EQ(output_shape(plain.plan.spec).h, 2 * direct.block_p());
  EXPECT_EQ(output_shape(plain.plan.spec).w % direct.block_q(), 1022 % direct.block_q());
  EXPECT_EQ(plain.note, "");
  // Padding on both sides: the tile between sees none of it.
  const Reduction padded = reduced("input=8,32,512,512 weight=64,32,5,9 padding=2,4 dilation=2,3 math=ieee", kNoLimit);
  EXPECT_EQ(padded.tiles, (std::array<std::int64_t, 3>{2, 3, 3}));
  EXPECT_EQ(padded.note, "");
}

TEST(Reduce, LimitsTakeTilesAwayAndTheNoteSaysWhich) {
  const std::string text = "input=8,32,512,512 weight=64,32,5,9 padding=2,4 dilation=2,3 math=ieee";
  const std::int64_t all = reduced(text, kNoLimit).multiply_adds;
  EXPECT_EQ(reduced(text, {0, all}).tiles, (std::array<std::int64_t, 3>{2, 3, 3}));
  const Reduction less = reduced(text, {0, all - 1});
  EXPECT_EQ(less.tiles, (std::array<std::int64_t, 3>{2, 2, 2})) << "the cheapest with several in each direction";
  EXPECT_EQ(less.note, "2 of 3 tiles along P, 2 of 3 tiles along Q");
  // A tile of P alone would have four of its eight rows.
  const Reduction least = reduced(text, {0, 1});
  EXPECT_EQ(least.tiles, (std::array<std::int64_t, 3>{1, 2, 1}));
  EXPECT_EQ(
      least.note,
      "1 of 2 tiles along N, 2 of 3 tiles along P, 1 of 3 tiles along Q, 94 M multiply-adds cannot be made fewer");
}

TEST(Reduce, WhatIsSmallEnoughStaysAsItIs) {
  const std::string text = "input=2,4,30,40 weight=8,4,3,3 padding=1 bias";
  const Reduction same = reduced(text, {10'000'000, 10'000'000});
  EXPECT_FALSE(same.reduced);
  EXPECT_EQ(same.plan, codegen::make_plan(parse_spec(text), kTarget));
  const Reduction full_size = reduced("input=256,3,224,224 weight=96,3,11,11 stride=4 padding=2",
                                      host_work_limits(/*documented=*/true, /*full_size=*/true, 1));
  EXPECT_FALSE(full_size.reduced);
}

TEST(Reduce, NothingIsLeftOfAConvolutionWithoutOutputs) {
  const Reduction none = reduced("input=0,4,30,40 weight=8,4,3,3", kNoLimit);
  EXPECT_EQ(none.plan.family(), codegen::Family::none);
  EXPECT_FALSE(none.reduced);
  EXPECT_EQ(none.multiply_adds, 0);
}

TEST(Reduce, OffsetsStayWide) {
  const Reduction small =
      reduced("input=64,64,1,524280 weight=128,64,1,3 stride=1,3 dilation=1,4 math=ieee", kDocumented);
  ASSERT_TRUE(small.reduced);
  EXPECT_LT(small.plan.spec.input.w, 1000);
  EXPECT_TRUE(small.plan.convolution().wide_index) << "2^31 elements at full size";
}

TEST(Reduce, StridesKeepWhatTheLastWindowLeavesOver) {
  // (227 - 11) / 4 + 1 = 55 with nothing left over; 229 leaves two rows that no window reaches.
  for (const std::int64_t extent : {227, 228, 229, 230}) {
    ConvSpec spec = parse_spec("input=64,3,227,227 weight=96,3,11,11 stride=4");
    spec.input.h = spec.input.w = extent;
    const Reduction small = reduce(spec, kTarget, kNoLimit);
    ASSERT_TRUE(small.reduced);
    EXPECT_EQ((small.plan.spec.input.h - 11) % 4, (extent - 11) % 4);
    EXPECT_EQ((small.plan.spec.input.w - 11) % 4, (extent - 11) % 4);
  }
}

TEST(Reduce, DepthwiseTilesOfSeveralPlanesKeepTheirLastOne) {
  // Tiles of 7, 3 and 9 whole planes: N must leave more than one tile, and the last as full as before.
  for (const char* text :
       {"input=999,5,14,14 weight=5,1,3,3 groups=5 alignment=4", "input=101,24,14,14 weight=24,1,3,3 groups=24",
        "input=512,10,7,7 weight=10,1,3,3 groups=10 padding=1 alignment=4"}) {
    SCOPED_TRACE(text);
    const Reduction small = reduced(text, kNoLimit);
    const auto& tiling = std::get<DepthwiseTiling>(small.plan.convolution().tiling);
    ASSERT_GT(tiling.planes, 1);
    ASSERT_TRUE(small.reduced);
    const ConvSpec full = parse_spec(text);
    EXPECT_GT(small.plan.spec.input.n * full.input.c, tiling.planes);
    EXPECT_EQ(small.plan.spec.input.n * full.input.c % tiling.planes, full.input.n * full.input.c % tiling.planes);
    EXPECT_GT(small.tiles[0], 1);
  }
}

TEST(Reduce, FallbackRunsSeveralBlocks) {
  const Reduction small = reduced("input=1,8,4000,4100 weight=8,8,3,3 dilation=1500,1600 math=ieee", {0, 1'000'000});
  ASSERT_TRUE(small.plan.tiling<FallbackTiling>() != nullptr);
  EXPECT_GT(small.plan.convolution().launch.blocks, 1u);
  EXPECT_LT(small.multiply_adds, 1'000'000);
  EXPECT_GE(small.plan.spec.input.h, 3001) << "the taps span as much";
}

TEST(Reduce, PlansAreThoseOfThePlannerWhereItHasThem) {
  // Grid and shared memory of a plan made from a tiling, against the candidate with the same tiling.
  int compared = 0;
  for (const DocumentedConfiguration& configuration : documented_configurations()) {
    const Reduction small = reduce(configuration.spec, kTarget, kDocumented);
    for (const codegen::ConvPlan& plan : codegen::enumerate_plans(small.plan.spec, kTarget, SIZE_MAX)) {
      if (plan.convolution().tiling != small.plan.convolution().tiling) continue;
      ++compared;
      // Blocks that walk over tiles are fewer, so that they still walk.
      if (plan.tiling<WgmmaTiling>() == nullptr) {
        EXPECT_EQ(small.plan.convolution().launch.blocks, plan.convolution().launch.blocks) << configuration.name;
      }
      EXPECT_EQ(small.plan.convolution().launch.threads, plan.convolution().launch.threads) << configuration.name;
      EXPECT_EQ(small.plan.convolution().launch.shared_bytes, plan.convolution().launch.shared_bytes)
          << configuration.name;
    }
  }
  EXPECT_GE(compared, 30);
}

TEST(Reduce, TilingsAreKeptThatThePlannerWouldNotLookAt) {
  // At full size no tile of four warps fits, so there are tiles of one; at the smaller one there would be tiles of
  // four.
  const ConvSpec spec = parse_spec(
      "input=11000,4,3355,1102 weight=1,4,9,1 stride=1,6 padding=129,75,0,0 dilation=4,1 "
      "dtype=f16");
  const Target target = parse_target("sm_75");
  const codegen::ConvPlan full = codegen::make_plan(spec, target);
  ASSERT_EQ(std::get<DirectTiling>(full.convolution().tiling).warps(), 1);
  const Reduction small = reduce(spec, target, {0, 1'000'000});
  ASSERT_TRUE(small.reduced);
  const auto plans = codegen::enumerate_plans(small.plan.spec, target, SIZE_MAX);
  EXPECT_TRUE(std::none_of(plans.begin(), plans.end(),
                           [&](const auto& one) { return one.convolution().tiling == full.convolution().tiling; }));
  EXPECT_EQ(small.plan.convolution().tiling, full.convolution().tiling);
  EXPECT_EQ(difference(small.plan, full), "");
}

TEST(Reduce, OneTileIsNoPlaneTooShortForTheKernelsStores) {
  const ConvSpec spec = parse_spec("input=200,40,382,1 weight=1,40,1,1 padding=3,0,0,0 dtype=f16");
  const codegen::ConvPlan full = codegen::make_plan(spec, kTarget);
  ASSERT_TRUE(codegen::WgmmaStore(geometry_of(full)).stores_bulk());
  const Reduction small = reduce(spec, kTarget, {0, 1'000'000});
  EXPECT_TRUE(small.reduced);
  EXPECT_TRUE(codegen::WgmmaStore(geometry_of(small.plan)).stores_bulk());
  EXPECT_EQ(difference(small.plan, full), "");
}

// Runs of one row, several of a row and such that go on in the next; one or two of a tile; of pixels that come in
// im2col mode as they are or transposed before, by strides too.
TEST(Reduce, RunsThatAreStoredAsBoxesStayWhatTheyAreOfTheirRow) {
  int of_rows = 0, half_tiles = 0, cross_rows = 0, transposed = 0;
  for (const char* text :
       {"input=32,8,33,254 weight=64,8,3,3 padding=0,0,1,1 math=tf32 input_layout=nhwc output_layout=nhwc",
        "input=32,8,41,380 weight=64,8,3,3 padding=1 stride=2 dtype=f16 input_layout=nhwc output_layout=nhwc",
        "input=32,9,33,254 weight=64,9,1,3 padding=0,0,1,1 math=tf32 output_layout=nhwc",
        "input=32,8,41,99 weight=64,8,1,1 math=tf32 input_layout=nhwc output_layout=nhwc",
        "input=32,8,33,191 weight=64,8,3,3 padding=1 stride=2 math=tf32 input_layout=nhwc output_layout=nhwc",
        "input=16,16,41,510 weight=192,16,3,3 stride=2 dtype=f16 output_layout=nhwc",
        "input=1,256,112,112 weight=1024,256,1,1 stride=2 math=tf32 output_layout=nhwc"}) {
    SCOPED_TRACE(text);
    const codegen::ConvPlan full = codegen::make_plan(parse_spec(text), kTarget);
    const auto& tiling = std::get<WgmmaTiling>(full.convolution().tiling);
    EXPECT_TRUE(tiling.stores_boxes());
    const auto rows_of = [](const codegen::ConvPlan& plan) { return output_shape(plan.spec).h; };
    const auto row_of = [](const codegen::ConvPlan& plan) { return geometry_of(plan).run_row(); };
    const auto last_runs = [&](const codegen::ConvPlan& plan) {
      return rows_of(plan) * (row_of(plan) / tiling.tile.columns) % tiling.runs();
    };
    const bool crosses = geometry_of(full).boxes_cross_rows();
    of_rows += crosses ? 0 : 1;
    half_tiles += !crosses && last_runs(full) != 0 ? 1 : 0;
    cross_rows += crosses ? 1 : 0;
    transposed += tiling.transposes_input() ? 1 : 0;
    for (const std::int64_t most : {std::int64_t{1}, INT64_MAX}) {
      const Reduction small = reduce(parse_spec(text), kTarget, {0, most});
      EXPECT_EQ(difference(small.plan, full), "");
      EXPECT_LT(rows_of(small.plan), rows_of(full));
      EXPECT_EQ(row_of(small.plan), row_of(full));
      EXPECT_TRUE(crosses || last_runs(small.plan) == last_runs(full));
      EXPECT_LE(small.plan.convolution().launch.blocks, geometry_of(small.plan).tiles());
      if (most == 1) continue;
      EXPECT_GE(rows_of(small.plan) * row_of(full), 2 * tiling.runs() * tiling.tile.columns);
      EXPECT_LE(rows_of(small.plan) * row_of(full), 4 * tiling.runs() * tiling.tile.columns + 4 * row_of(full));
    }
  }
  EXPECT_GE(of_rows, 2);
  EXPECT_GE(half_tiles, 1);
  EXPECT_GE(cross_rows, 1);
  EXPECT_GE(transposed, 1);
}

TEST(Reduce, ExecutedMultiplyAddsAreThoseOfWholeTiles) {
  const codegen::ConvPlan direct = codegen::make_plan(parse_spec("input=1,8,6,300 weight=16,8,3,3 math=ieee"), kTarget);
  const auto& tiling = std::get<DirectTiling>(direct.convolution().tiling);
  EXPECT_EQ(executed_multiply_adds(direct), std::int64_t{direct.convolution().launch.blocks} * tiling.block_k() *
                                                tiling.block_p() * tiling.block_q() * 8 * 9);
  EXPECT_EQ(multiply_adds(direct.spec), 16 * 4 * 298 * 8 * 9);
  EXPECT_GE(executed_multiply_adds(direct), multiply_adds(direct.spec));
}

// Blocks whose tiles fit execute as many multiply-adds as the convolution has, whatever their schedule.
TEST(Reduce, TilesThatFitExecuteNoMoreThanTheConvolutionHas) {
  std::set<WgmmaTiling::Schedule> seen;
  for (const codegen::ConvPlan& plan :
       codegen::enumerate_plans(parse_spec("input=2,64,16,16 weight=64,64,1,1 math=tf32"), kTarget, SIZE_MAX)) {
    const auto* tiling = plan.tiling<WgmmaTiling>();
    if (tiling == nullptr || tiling->tile.window != tiling->tile.columns || tiling->tile.images > 0) continue;
    if (256 % (tiling->runs() * tiling->tile.window) != 0 || 64 % geometry_of(plan).chunk_channels() != 0) continue;
    EXPECT_EQ(executed_multiply_adds(plan), multiply_adds(plan.spec)) << tiling->tile.columns << " columns";
    seen.insert(tiling->schedule);
  }
  EXPECT_EQ(seen.size(), 3u);
}

TEST(WorkLimits, DocumentedConfigurationsAreMadeSmallAndOthersOnlyIfTheyAreLarge) {
  EXPECT_LT(host_work_limits(true, false, 200'000'000).as_given, 10'000'000);
  EXPECT_EQ(host_work_limits(false, false, 200'000'000).as_given, 200'000'000);
  EXPECT_EQ(host_work_limits(true, false, 1'000'000).as_given, 1'000'000) << "never above the limit";
  EXPECT_EQ(host_work_limits(true, true, 1).as_given, INT64_MAX);
}

// The transposition leaves the rows that taps meet, but for a single row that none does.
TEST(Reduce, RowsOfTransposedInputThatTapsMeetAreLeft) {
  const std::string text =
      "input=7,22,169,613 weight=10,22,1,4 stride=2,2 padding=3,1,0,0 dilation=1,2 dtype=f16 "
      "math=fp32 residual=true";
  const Reduction small = reduced(text, {0, 1'000'000});
  EXPECT_EQ(difference(small.plan, codegen::make_plan(parse_spec(text), kTarget)), "");
}

// The excerpt in README.md is of a real run; what of it does not depend on the machine must stay true.
TEST(Reduce, TheReadmeShowsTheShapesThatRun) {
  const std::string readme = test::read_file(std::string(JITCONV_TEST_DATA) + "/../README.md");
  const std::size_t begin = readme.find("<!-- host table -->"), end = readme.find("<!-- end -->", begin);
  ASSERT_NE(end, std::string::npos);
  const auto extents = [](const ConvSpec& spec) {
    return std::to_string(spec.input.n) + "," + std::to_string(spec.input.h) + "," + std::to_string(spec.input.w);
  };
  int rows = 0;
  for (const std::string& line : test::lines_of(readme.substr(begin, end - begin))) {
    std::istringstream words(line);
    std::string name, ran, of, family, tiles;
    words >> name >> ran >> of >> family >> tiles;
    const DocumentedConfiguration* configuration = find_documented(name);
    if (configuration == nullptr) continue;
    SCOPED_TRACE(line);
    ++rows;
    const Reduction small = reduce(configuration->spec, kTarget, kDocumented);
    EXPECT_EQ(ran, extents(small.plan.spec));
    EXPECT_EQ(of, extents(configuration->spec));
    EXPECT_EQ(family, codegen::to_string(small.plan.family()));
    EXPECT_EQ(tiles, std::to_string(small.tiles[0]) + "x" + std::to_string(small.tiles[1]) + "x" +
                         std::to_string(small.tiles[2]));
  }
  EXPECT_GE(rows, 5);
}

RC_GTEST_PROP(Reduce, OnlyNHAndWShrinkAndTheKernelStays, ()) {
  test::SpecLimits limits;
  limits.outputs = 3000;
  limits.padding = *rc::gen::element<std::int64_t>(3, 100);
  limits.dilation = *rc::gen::element<std::int64_t>(3, 60);
  ConvSpec spec = *test::valid_operations(limits);
  spec.input.n *= *rc::gen::element<std::int64_t>(1, 7, 1000);
  const Target target = parse_target(*rc::gen::element<std::string>("sm_75", "sm_90a"));
  const std::int64_t most = *rc::gen::element<std::int64_t>(1, 1'000'000, INT64_MAX);
  codegen::ConvPlan full;
  try {
    full = codegen::make_plan(spec, target);
  } catch (const SpecError& error) {
    RC_ASSERT(error.code() == ErrorCode::unsupported);  // more blocks than a grid has
    return;
  }
  const Reduction small = reduce(spec, target, {0, most});
  const ConvSpec& made = small.plan.spec;
  validate(made);
  RC_ASSERT(made == with_extents_of(full.spec, made));
  RC_ASSERT(small.reduced == (made != full.spec));
  RC_ASSERT(made.input.n <= full.spec.input.n);
  RC_ASSERT(made.input.h <= full.spec.input.h);
  RC_ASSERT(made.input.w <= full.spec.input.w);
  RC_ASSERT(small.multiply_adds == executed_multiply_adds(small.plan));
  RC_ASSERT(small.multiply_adds <= executed_multiply_adds(full));
  if (full.family() == codegen::Family::none) return;
  RC_ASSERT(output_shape(made).h * output_shape(made).w > 0);
  RC_ASSERT(made.input.n > 0 || full.spec.input.n == 0);
  // Rows taken from a gradient with a stride may be all of a phase; the kernel then has a phase less.
  // Those of the documented configurations stay as they are: see reduce_gradient_test.cpp.
  if (codegen::needs_phases(codegen::lower(full.spec))) return;
  RC_ASSERT(difference(small.plan, full) == "");
}

}  // namespace
}  // namespace jitconv::tools
