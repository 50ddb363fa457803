// The pointwise family: for which convolutions it has plans and what it says of others, that its tiles cover the
// output, what lies in shared memory, and the lines of its multiplications.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <regex>
#include <sstream>

#include "codegen/arithmetic.h"
#include "codegen/plan.h"
#include "codegen/source.h"
#include "codegen/text/emitter.h"
#include "codegen/text/kernel_name.h"
#include "codegen/wgmma/geometry.h"
#include "codegen/wgmma/store.h"
#include "support/random_specs.h"
#include "unit/codegen/refusals.h"
#include "unit/codegen/squeezed.h"
#include "unit/codegen/tile_cover.h"

namespace jitconv::codegen {
namespace {

struct PointwiseCandidate {
  ConvSpec spec;  ///< canonical
  Problem problem;
  PointwiseTiling tiling;
  ConvPlan plan;
};

std::vector<PointwiseCandidate> candidates_of(const ConvSpec& spec) {
  std::vector<PointwiseCandidate> found;
  for (ConvPlan& plan : enumerate_plans(spec, parse_target("sm_90a"), SIZE_MAX))
    if (const auto* tiling = plan.tiling<PointwiseTiling>())
      found.push_back({plan.spec, plan.convolution().problem, *tiling, std::move(plan)});
  return found;
}

/// A random spec that the family computes.
ConvSpec pointwise_spec() {
  ConvSpec spec;
  spec.groups = *rc::gen::inRange<std::int64_t>(1, 4);
  spec.weight.c = 8 * *rc::gen::inRange<std::int64_t>(2, 30);
  spec.weight.k = spec.groups * *rc::gen::inRange<std::int64_t>(1, 150);
  spec.weight.r = spec.weight.s = 1;
  spec.input = {*rc::gen::inRange<std::int64_t>(1, 5), spec.weight.c * spec.groups,
                *rc::gen::inRange<std::int64_t>(1, 12), 4 * *rc::gen::inRange<std::int64_t>(1, 8)};
  spec.epilogue.bias = *rc::gen::arbitrary<bool>();
  spec.epilogue.residual = *rc::gen::arbitrary<bool>();
  spec.math = MathMode::tf32;
  if (*rc::gen::inRange(0, 2) == 0) {  // pixels that are no line
    spec.epilogue.residual = false;
    spec.stride = {*rc::gen::inRange<std::int64_t>(1, 4), *rc::gen::inRange<std::int64_t>(1, 4)};
    if (*rc::gen::inRange(0, 2) == 0) spec.input.w = *rc::gen::inRange<std::int64_t>(1, 20);
  }
  return spec;
}

PointwiseCandidate some_candidate() {
  const std::vector<PointwiseCandidate> all = candidates_of(pointwise_spec());
  RC_PRE(!all.empty());
  return all[*rc::gen::inRange<std::size_t>(0, all.size())];
}

TEST(PointwisePlan, SaysWhatStandsInTheWay) {
  const std::string plain = "input=8,64,56,56 weight=64,64,1,1";
  ASSERT_FALSE(candidates_of(parse_spec(plain + " math=tf32")).empty());
  for (const test::Obstacle& one :
       {test::Obstacle{"", "fp32 tensors take tensor cores only with math=tf32"},
        {" dtype=f16", "the tensors are f16"},
        {" math=tf32 stride=2 residual", "a residual, which is added to pixels of a line only"},
        {" math=tf32 padding=1", "the input is padded"},
        {" math=tf32 input_layout=nhwc", "the input is nhwc"},
        {" math=tf32 output_layout=nhwc", "the output is nhwc"},
        {" math=tf32 alignment=8", "alignment is 8, copies and stores need 16"}})
    EXPECT_EQ(test::note_of("pointwise", plain + one.change), std::string("not possible: ") + one.words) << one.change;
  EXPECT_EQ(test::note_of("pointwise", "input=8,64,56,56 weight=64,64,3,3 math=tf32"),
            "not possible: the filter is 3x3");
  EXPECT_EQ(test::note_of("pointwise", "input=8,20,56,56 weight=64,20,1,1 math=tf32"),
            "not possible: groups of 20 channels, it takes a multiple of 8 and at least 16");
  EXPECT_EQ(test::note_of("pointwise", "input=8,64,27,27 weight=64,64,1,1 math=tf32"),
            "not possible: planes of 729 pixels with a stride of (1,1), neither of whose rows are whole vectors of 16 "
            "bytes");
  EXPECT_EQ(test::note_of("pointwise", plain + " math=tf32", "sm_100a"),
            "not possible: warpgroup multiplications need sm_90a, the target is sm_100a");
}

// A family that knows no strided gradients is asked for the dense convolution of the phases, which has another filter.
TEST(PointwisePlan, SaysThatTheFilterIsThatOfPhases) {
  const std::string gradient = "operation=data_gradient input=8,64,56,56 weight=128,64,3,3 padding=1 math=tf32";
  EXPECT_EQ(test::note_of("pointwise", gradient), "not possible: the filter is 3x3");
  EXPECT_EQ(test::note_of("pointwise", gradient + " stride=2"),
            "not possible: the filter is 2x2 (in the dense convolution of its phases)");
  EXPECT_EQ(test::note_of("depthwise", gradient + " stride=2"), "not possible: 128 input channels per group, not 1")
      << "it computes the gradient as it is";
}

// Where a kernel that packs weights would take a good part of the time.
TEST(PointwisePlan, IsChosenForFewChannelsOfSmallImages) {
  for (const char* text : {"input=16,64,56,56 weight=256,64,1,1 math=tf32",
                           "input=16,128,28,28 weight=512,128,1,1 math=tf32 bias activation=relu"}) {
    const ConvPlan plan = make_plan(parse_spec(text), parse_target("sm_90a"));
    EXPECT_EQ(to_string(plan.family()), "pointwise") << text;
    EXPECT_EQ(plan.packed_weight_bytes(), 0) << text;
  }
}

TEST(PointwisePlan, LeavesLargeImagesToTheCopyEngine) {
  for (const char* text : {"input=16,64,512,512 weight=128,64,1,1 math=tf32",
                           "input=16,64,1024,1024 weight=128,64,1,1 math=tf32 bias activation=relu"}) {
    const ConvPlan plan = make_plan(parse_spec(text), parse_target("sm_90a"));
    ASSERT_EQ(to_string(plan.family()), "wgmma") << text;
    const auto& tiling = std::get<WgmmaTiling>(plan.convolution().tiling);
    EXPECT_TRUE(tiling.converts_pixels()) << text;
    EXPECT_TRUE(WgmmaStore(WgmmaGeometry(plan.convolution().problem, tiling)).stores_bulk()) << text;
  }
}

TEST(PointwisePlan, TakesRowsOfStridesAndImagesThatAreNoWholeVectors) {
  using Pixels = PointwiseTiling::Pixels;
  const auto has = [](const std::string& text, Pixels wanted) {
    for (const PointwiseCandidate& one : candidates_of(parse_spec(text + " math=tf32")))
      if (one.tiling.tile == wanted) return true;
    return false;
  };
  EXPECT_TRUE(has("input=16,512,28,28 weight=256,512,1,1 stride=2", Pixels::rows));
  EXPECT_TRUE(has("input=16,512,28,28 weight=256,512,1,1 stride=2", Pixels::images));
  EXPECT_FALSE(has("input=16,512,14,14 weight=256,512,1,1 stride=2", Pixels::rows)) << "rows of 56 bytes";
  EXPECT_TRUE(has("input=16,512,7,7 weight=256,512,1,1", Pixels::images));
  EXPECT_FALSE(has("input=16,512,7,7 weight=256,512,1,1", Pixels::line)) << "planes of 196 bytes";
  EXPECT_FALSE(has("input=16,512,14,14 weight=256,512,1,1 residual", Pixels::images));
  EXPECT_FALSE(has("input=16,512,56,56 weight=256,512,1,1", Pixels::images));
}

TEST(PointwisePlan, StreamsTheWeightsOfManyChannels) {
  for (const char* text : {"input=2,2048,128,128 weight=256,2048,1,1 math=tf32 bias",
                           "input=2,1920,64,64 weight=640,1920,1,1 math=tf32"}) {
    const ConvPlan plan = make_plan(parse_spec(text), parse_target("sm_90a"));
    ASSERT_EQ(to_string(plan.family()), "pointwise") << text;
    EXPECT_TRUE(std::get<PointwiseTiling>(plan.convolution().tiling).streams_weights) << text;
    EXPECT_EQ(plan.packed_weight_bytes(), 0) << text;
  }
}

// Few tiles and many channels: the reduction is what is left to share.
TEST(PointwisePlan, SplitsWhatLeavesSmsWithoutATile) {
  // The family's cheapest plan, whether or not another family has a cheaper one.
  std::vector<ConvPlan> plans =
      enumerate_plans(parse_spec("input=1,1024,14,14 weight=256,1024,1,1 math=tf32"), parse_target("sm_90a"), SIZE_MAX);
  std::erase_if(plans, [](const ConvPlan& one) { return one.family() != Family::pointwise; });
  ASSERT_FALSE(plans.empty());
  const ConvPlan& plan = plans.front();
  EXPECT_GT(std::get<PointwiseTiling>(plan.convolution().tiling).splits, 1);
  EXPECT_EQ(plan.workspace_bytes(),
            std::get<PointwiseTiling>(plan.convolution().tiling).splits * std::int64_t{196 * 256 * 4});
}

RC_GTEST_PROP(PointwisePlanProperty, SharedMemoryIsCutWithoutOverlap, ()) {
  const auto [spec, problem, t, plan] = some_candidate();
  const std::int64_t pitch = t.pixel_pitch(problem), stage = t.stage_bytes(problem);
  RC_ASSERT(t.weights_first_byte(problem) >= t.stages * stage);
  RC_ASSERT(t.weights_first_byte(problem) % (t.streams_weights ? 1024 : 16) == 0);
  switch (t.tile) {
    case PointwiseTiling::Pixels::line:
      RC_ASSERT(stage == 4 * t.chunk_channels * pitch && pitch >= t.block_pixels() && pitch % 32 == 8);
      break;
    case PointwiseTiling::Pixels::images:  // each a copy of whole vectors
      RC_ASSERT(pitch == problem.input_plane() && stage == 4 * t.chunk_channels * pitch * t.extent);
      RC_ASSERT(4 * t.chunk_channels * pitch % 16 == 0 && 4 * problem.c * pitch % 16 == 0);
      break;
    case PointwiseTiling::Pixels::rows:
      RC_ASSERT(stage >= 4 * t.chunk_channels * pitch && stage % 128 == 0);
      RC_ASSERT(4 * problem.columns.input % 16 == 0 && problem.columns.input <= 256 && t.extent <= 256);
      break;
  }
  RC_ASSERT(t.weight_pitch() >= 16 * t.block_k() && t.weight_pitch() % 128 == 16);
  RC_ASSERT(t.bias_first_byte(problem) - t.weights_first_byte(problem) ==
            (t.streams_weights ? t.stages * t.weight_stage_bytes() : t.slab_slices(problem) * t.weight_pitch()));
  if (t.streams_weights) {  // TMA brings rows of a swizzle
    RC_ASSERT(t.weight_row_bytes() == 64 || t.weight_row_bytes() == 128);
    RC_ASSERT(t.weight_stage_bytes() % 1024 == 0 && t.weight_stage_bytes() >= t.block_k() * t.weight_row_bytes());
    RC_ASSERT(t.block_k() <= 256);
  }
  RC_ASSERT(t.barriers_first_byte(problem) - t.bias_first_byte(problem) >=
            (spec.epilogue.bias && t.splits == 1 ? 4 * t.block_k() : 0));
  RC_ASSERT(t.barriers_first_byte(problem) % 8 == 0);
  RC_ASSERT(plan.convolution().launch.shared_bytes == t.shared_bytes(problem));
  RC_ASSERT(t.shared_bytes(problem) == t.barriers_first_byte(problem) + 8 * (2 * t.stages + 1));
  RC_ASSERT(plan.convolution().launch.shared_bytes <= static_cast<unsigned>(plan.target.shared_bytes_per_block));
}

RC_GTEST_PROP(PointwisePlanProperty, TilesAreWhatInstructionsAndRegistersTake, ()) {
  const auto [spec, problem, t, plan] = some_candidate();
  RC_ASSERT(t.columns % 8 == 0 && t.columns >= 8 && t.columns <= 256 && t.accumulators() <= 128);
  RC_ASSERT(t.block_pixels() * t.block_k() == 64 * t.lane_pixels * t.columns);
  RC_ASSERT(t.tile_pixels(problem) <= t.block_pixels() && (t.gathers() ? t.extent > 0 : t.extent == 0));
  RC_ASSERT(t.stages >= 2 && t.batches() >= 1 && t.batches() * t.batch_steps * 8 == t.chunk_channels);
  RC_ASSERT(128 * (2 * PointwiseTiling::kConsumerRegisters + PointwiseTiling::kProducerRegisters) <=
            PointwiseTiling::kThreads * PointwiseTiling::kLaunchRegisters);
  RC_ASSERT(plan.convolution().launch.threads == static_cast<unsigned>(PointwiseTiling::kThreads));
  // Blocks come in sets of all slabs, and none is without a tile.
  RC_ASSERT(plan.convolution().launch.blocks % t.slabs(problem) == 0 &&
            plan.convolution().launch.blocks / t.slabs(problem) <= t.tiles(problem));
}

RC_GTEST_PROP(PointwisePlanProperty, SplitsShareAllSteps, ()) {
  const auto [spec, problem, t, plan] = some_candidate();
  RC_ASSERT(t.steps(problem) * t.chunk_channels == spec.weight.c);
  RC_ASSERT(t.splits * t.steps_of_split(problem) >= t.steps(problem));
  RC_ASSERT((t.splits - 1) * t.steps_of_split(problem) < t.steps(problem));
  RC_ASSERT(t.slab_slices(problem) * 4 == t.steps_of_split(problem) * t.chunk_channels);
}

/// Restates the walk and the store of templates/pointwise/kernel.cu.in, for one split.
RC_GTEST_PROP(PointwisePlanProperty, EachOutputIsStoredOnce, ()) {
  const auto [spec, problem, t, plan] = some_candidate();
  RC_PRE(PointwiseTiling::pixels(problem) * spec.weight.k <= test::kFewOutputs);
  test::TileCover cover(spec);
  const std::int64_t plane = problem.output_plane(), width = problem.columns.output,
                     group_k = spec.weight.k / spec.groups;
  const std::int64_t slabs = t.slabs(problem), tiles_k = t.tiles_k(problem);
  for (std::int64_t block = 0; block < plan.convolution().launch.blocks; ++block) {
    const std::int64_t slab = block % slabs, group = slab / tiles_k % spec.groups;
    if (slab / tiles_k / spec.groups != 0) continue;
    for (std::int64_t tile = block / slabs; tile < t.tiles(problem); tile += plan.convolution().launch.blocks / slabs) {
      for (int consumer = 0; consumer < 2; ++consumer) {
        const std::int64_t k_first = slab % tiles_k * t.block_k() + (t.consumers_k == 2 ? consumer * t.columns : 0);
        const std::int64_t first = t.consumers_k == 1 ? consumer * t.consumer_pixels() : 0;
        for (std::int64_t k = k_first; k < k_first + t.columns && k < group_k; ++k)
          for (std::int64_t i = first; i < std::min(first + t.consumer_pixels(), t.tile_pixels(problem)); ++i) {
            std::int64_t pixel = tile * t.tile_pixels(problem) + i;  // of all images
            if (t.tile == PointwiseTiling::Pixels::rows) {
              const std::int64_t tiles = ceil_div(problem.rows.output, t.extent);
              const std::int64_t output = tile % tiles * t.tile_pixels(problem) + i;
              if (output >= plane) continue;
              pixel = tile / tiles * plane + output;
            }
            if (pixel < problem.n * plane)
              cover.add(pixel / plane, group * group_k + k, pixel % plane / width, pixel % width);
          }
      }
    }
  }
  RC_ASSERT(cover.each_once());
}

// Eights of channels in order, each loaded before it is multiplied, and never into what may still be read.
RC_GTEST_PROP(PointwiseSourceProperty, EachChannelIsMultipliedOnce, ()) {
  const auto [spec, problem, t, plan] = some_candidate();
  const std::string text = generate(plan).text;
  const std::size_t begin = text.find("// begin channels\n"), end = text.find("// end channels\n");
  RC_ASSERT(begin != std::string::npos && end != std::string::npos);
  std::istringstream lines(text.substr(begin, end - begin));
  static const std::regex load(R"(load_pixels\(a\[(\d)\]\[(\d)\], pixels \+ (\d+) \* kPixelPitch(?:, offset)?\);)");
  static const std::regex multiply(
      R"(multiply\(sum\[(\d)\], a\[(\d)\]\[(\d)\]\[(\d)\], weights_of_step \+ (\d+)(?: \* kSliceRows)?, (.*)\);  // c(\d+)\.\.(\d+))");
  const auto number = [](const std::smatch& match, std::size_t i) { return std::stoi(match[i]); };
  std::map<std::pair<int, int>, int> loaded;  // first channel of each half and step
  int multiplied = 0;
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (std::regex_search(line, match, load)) {
      loaded[{number(match, 1), number(match, 2)}] = number(match, 3);
    } else if (std::regex_search(line, match, multiply)) {
      const int c = multiplied / t.instructions() * 8;
      RC_ASSERT(number(match, 1) == multiplied % t.instructions() && number(match, 4) == number(match, 1));
      RC_ASSERT(loaded.at({number(match, 2), number(match, 3)}) == c);
      RC_ASSERT(number(match, 5) * 4 == c && number(match, 7) == c && number(match, 8) == c + 7);
      RC_ASSERT((match[6] == "1") == (c != 0));
      ++multiplied;
    }
  }
  RC_ASSERT(multiplied == t.chunk_channels / 8 * t.instructions());
}

RC_GTEST_PROP(PointwiseSourceProperty, SignaturesAndLaunchesComeFromOneList, ()) {
  const auto [spec, problem, t, plan] = some_candidate();
  const KernelSource source = generate(plan);
  const std::string name = kernel_name(plan);
  RC_ASSERT(source.entries.size() == (t.splits > 1 ? 2u : 1u));
  RC_ASSERT(source.scratch == plan.scratch && plan.packed_weight_bytes() == 0);
  RC_ASSERT(plan.workspace_bytes() == t.partial_sum_bytes(problem));
  for (const KernelEntry& entry : source.entries) {
    RC_ASSERT(!entry.packs_weights);
    const std::string declaration = entry.name + "(" + parameter_list(entry.arguments) + ") {\n";
    RC_ASSERT(test::squeezed(source.text).find(test::squeezed(declaration)) != std::string::npos);
  }
  RC_ASSERT(source.entries[0].name == name && source.entries[0].grid[0] == plan.convolution().launch.blocks);
  if (t.splits == 1) return;
  const std::int64_t outputs = PointwiseTiling::pixels(problem) * spec.weight.k;
  RC_ASSERT(std::int64_t{source.entries[1].grid[0]} * source.entries[1].threads >= outputs);
  RC_ASSERT((std::int64_t{source.entries[1].grid[0]} - 1) * source.entries[1].threads < outputs);
}

}  // namespace
}  // namespace jitconv::codegen
