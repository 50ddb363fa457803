// The wgmma_rows family: for which convolutions it has plans and what it says of others, that its tiles cover the
// output and consumers its rows, what lies in shared memory, and the lines of its multiplications.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <regex>
#include <sstream>

#include "codegen/plan.h"
#include "codegen/source.h"
#include "codegen/text/emitter.h"
#include "codegen/text/kernel_name.h"
#include "codegen/wgmma_rows/tiling.h"
#include "unit/codegen/refusals.h"
#include "unit/codegen/squeezed.h"
#include "unit/codegen/tile_cover.h"

namespace jitconv::codegen {
namespace {

std::vector<ConvPlan> row_plans(const ConvSpec& spec) {
  std::vector<ConvPlan> plans = enumerate_plans(spec, parse_target("sm_90a"), SIZE_MAX);
  std::erase_if(plans, [](const ConvPlan& plan) { return plan.family() != Family::wgmma_rows; });
  return plans;
}

WgmmaRowsGeometry geometry_of(const ConvPlan& plan) {
  return {plan.convolution().problem, std::get<WgmmaRowsTiling>(plan.convolution().tiling)};
}

/// A random plan of the family, of small tensors.
ConvPlan some_plan() {
  ConvSpec spec;
  spec.weight.k = *rc::gen::inRange<std::int64_t>(1, 65);
  spec.weight.c = *rc::gen::inRange<std::int64_t>(1, 90);
  spec.weight.r = *rc::gen::inRange<std::int64_t>(2, 5);
  spec.weight.s = *rc::gen::inRange<std::int64_t>(1, 7);
  spec.dilation = Size2(*rc::gen::inRange<std::int64_t>(1, 4), *rc::gen::inRange<std::int64_t>(1, 4));
  spec.padding.top = *rc::gen::inRange<std::int64_t>(0, 5);
  spec.padding.left = *rc::gen::inRange<std::int64_t>(0, 5);
  spec.input = {*rc::gen::inRange<std::int64_t>(1, 4), spec.weight.c, *rc::gen::inRange<std::int64_t>(14, 40),
                *rc::gen::inRange<std::int64_t>(25, 300)};
  spec.dtype = *rc::gen::element(DataType::f32, DataType::f16, DataType::bf16);
  spec.epilogue.bias = *rc::gen::arbitrary<bool>();
  spec.epilogue.residual = *rc::gen::arbitrary<bool>();
  spec.math = MathMode::tf32;
  std::vector<ConvPlan> all = row_plans(spec);
  RC_ASSERT(!all.empty());
  return all[*rc::gen::inRange<std::size_t>(0, all.size())];
}

TEST(WgmmaRowsPlan, SaysWhatStandsInTheWay) {
  const std::string plain = "input=8,64,56,56 weight=16,64,3,3";
  ASSERT_FALSE(row_plans(parse_spec(plain + " math=tf32")).empty());
  for (const test::Obstacle& one : {test::Obstacle{"", "the math mode does not let it multiply on tensor cores"},
                                    {" math=tf32 stride=2", "the stride is (2,2)"},
                                    {" math=tf32 input_layout=nhwc", "the input is nhwc"},
                                    {" math=tf32 output_layout=nhwc", "the output is nhwc"},
                                    {" math=tf32 alignment=8", "alignment is 8, stores need 16"}})
    EXPECT_EQ(test::note_of("wgmma_rows", plain + one.change), std::string("not possible: ") + one.words) << one.change;
  EXPECT_EQ(test::note_of("wgmma_rows", "input=8,64,56,56 weight=64,64,1,3 math=tf32"),
            "not possible: the filter has 1 rows, consumers are 2 to 4");
  EXPECT_EQ(test::note_of("wgmma_rows", "input=8,64,56,56 weight=65,64,3,3 math=tf32"),
            "not possible: 65 output channels, a multiplication has 64");
  EXPECT_EQ(test::note_of("wgmma_rows", "input=8,64,56,56 weight=16,32,3,3 groups=2 math=tf32"),
            "not possible: there are 2 groups");
  EXPECT_EQ(test::note_of("wgmma_rows", plain + " math=tf32", "sm_100a"),
            "not possible: warpgroup multiplications need sm_90a, the target is sm_100a");
}

// Many input channels of large images: gradients of the inputs of A and B, and a last layer.
TEST(WgmmaRowsPlan, IsChosenForFewOutputChannels) {
  const auto chosen = [](const char* text) {
    return std::string(to_string(make_plan(parse_spec(text), parse_target("sm_90a")).family()));
  };
  EXPECT_EQ(chosen("operation=data_gradient input=8,64,512,1024 weight=128,64,3,3 math=tf32"), "wgmma_rows");
  EXPECT_EQ(chosen("operation=data_gradient input=16,16,1024,1024 weight=128,16,3,3 math=tf32"), "wgmma_rows");
  EXPECT_EQ(chosen("input=8,128,512,512 weight=16,128,3,3 padding=1 math=tf32"), "wgmma_rows");
}

RC_GTEST_PROP(WgmmaRowsPlanProperty, SharedMemoryIsCutWithoutOverlap, ()) {
  const ConvPlan plan = some_plan();
  const WgmmaRowsGeometry g = geometry_of(plan);
  const WgmmaRowsTiling& t = g.tiling();
  RC_ASSERT(g.pixel_bytes() == 16 * t.slices * g.strip_pixels());
  RC_ASSERT(g.weight_bytes() == 16 * 64 * t.slices * g.fold().taps() * plan.spec.weight.r);
  RC_ASSERT(g.stage_bytes() == g.pixel_bytes() + (t.keeps_weights ? 0 : g.weight_bytes()));
  RC_ASSERT(g.weights_first_byte() >= t.stages * g.stage_bytes() && g.weights_first_byte() % 16 == 0);
  RC_ASSERT(g.staging_first_byte() - g.weights_first_byte() >= (t.keeps_weights ? g.chunks() * g.weight_bytes() : 0));
  RC_ASSERT(g.barriers_first_byte() - g.staging_first_byte() == 4 * 4 * 8 * g.staging_pitch());
  RC_ASSERT(g.staging_pitch() >= g.fold_reach() + t.columns + g.lead() && g.staging_pitch() % 16 == 8);
  RC_ASSERT(g.shared_bytes() == g.barriers_first_byte() + 8 * (2 * t.stages + 1 + 4 * g.consumers()));
  RC_ASSERT(plan.convolution().launch.shared_bytes == g.shared_bytes());
  RC_ASSERT(g.shared_bytes() <= plan.target.shared_bytes_per_block);
  RC_ASSERT(plan.packed_weight_bytes() >= g.chunks() * g.weight_bytes());
}

RC_GTEST_PROP(WgmmaRowsPlanProperty, TilesAreWhatInstructionsAndRegistersTake, ()) {
  const ConvPlan plan = some_plan();
  const WgmmaRowsGeometry g = geometry_of(plan);
  const WgmmaRowsTiling& t = g.tiling();
  RC_ASSERT(t.columns % 8 == 0 && t.columns <= 256 && t.slices % 2 == 0 && t.stages >= WgmmaRowsTiling::kProducerWarps);
  RC_ASSERT(t.window % g.sector_elements() == 0 && t.window > 0);
  // Every output that a strip stores is computed by it.
  RC_ASSERT(t.window + g.alignment_outputs() + g.fold_reach() <= t.columns);
  RC_ASSERT(plan.spec.weight.k * t.folded_columns <= 64 && g.chunks() * g.chunk_channels() >= plan.spec.weight.c);
  RC_ASSERT(g.consumers() == plan.spec.weight.r);
  RC_ASSERT(plan.convolution().launch.threads == static_cast<unsigned>(128 * (g.consumers() + 1)));
  RC_ASSERT(g.launch_registers() * g.threads() <= 65536);
  RC_ASSERT(g.consumer_registers() * g.consumers() + g.producer_registers() <=
            g.launch_registers() * (g.consumers() + 1));
  RC_ASSERT(g.consumer_registers() % 8 == 0 && g.producer_registers() % 8 == 0);
  RC_ASSERT(t.load_batch * g.chunk_channels() <= g.load_registers());
  RC_ASSERT(plan.convolution().launch.blocks <= g.tiles());
}

/// Restates the walk and the store of templates/wgmma_rows/.
RC_GTEST_PROP(WgmmaRowsPlanProperty, EachOutputIsStoredOnce, ()) {
  const ConvPlan plan = some_plan();
  const TensorShape y = output_shape(plan.spec);
  RC_PRE(y.n * y.c * y.h * y.w <= test::kFewOutputs * 5);
  const WgmmaRowsGeometry g = geometry_of(plan);
  const WgmmaRowsTiling& t = g.tiling();
  test::TileCover cover(plan.spec);
  const std::int64_t dilation = plan.convolution().problem.rows.dilation;
  for (std::int64_t number = 0; number < g.tiles(); ++number) {
    const std::int64_t first_column = number % g.strips() * t.window;
    const std::int64_t first = number / g.strips() % g.tiles_of_residue() * t.tile_rows;
    const std::int64_t residue = number / g.strips() / g.tiles_of_residue() % g.residues();
    const std::int64_t n = number / g.strips() / g.tiles_of_residue() / g.residues();
    for (std::int64_t row = first; row < first + t.tile_rows; ++row) {
      const std::int64_t p = residue + row * dilation;
      for (std::int64_t k = 0; k < y.c; ++k) {
        const std::int64_t start = ((n * y.c + k) * y.h + p) * y.w + first_column;
        const std::int64_t late = positive_modulo(-start, g.sector_elements());
        RC_ASSERT(late <= g.alignment_outputs());
        const std::int64_t begin = first_column == 0 ? 0 : first_column + late;
        for (std::int64_t q = begin; q < std::min(first_column + t.window + late, y.w); ++q) cover.add(n, k, p, q);
      }
    }
  }
  RC_ASSERT(cover.each_once());
}

// Each tap has pairs of slices in ascending order; the first overwrites the sums of the row before.
RC_GTEST_PROP(WgmmaRowsSourceProperty, EachTapIsMultipliedOnce, ()) {
  const ConvPlan plan = some_plan();
  const WgmmaRowsGeometry g = geometry_of(plan);
  std::istringstream lines(generate(plan).text);
  static const std::regex multiply(
      R"(multiply\(sum, weights \+ (\d+) \* kBlockRows, pixels \+ (\d+), (.*)\);  // s(\d+)(?:\.\.(\d+))? c(\d+)\.\.(\d+))");
  std::int64_t unit = 0, next_column = 0;
  for (std::string line; std::getline(lines, line);) {
    std::smatch match;
    if (!std::regex_search(line, match, multiply)) continue;
    const std::int64_t slice = unit % g.tiling().slices, s = std::stoi(match[4]);
    const std::int64_t last = match[5].matched ? std::stoi(match[5]) : s;
    RC_ASSERT(std::stoi(match[1]) == unit && (match[3] == "1") == (unit != 0));
    RC_ASSERT(std::stoi(match[2]) == slice * g.strip_pixels() + s * plan.convolution().problem.columns.dilation);
    RC_ASSERT(std::stoi(match[6]) == slice * g.slice_channels());
    RC_ASSERT(std::stoi(match[7]) == (slice + 2) * g.slice_channels() - 1);
    // Columns follow each other; the last tap of a fold may have some that the one before it has.
    RC_ASSERT(s <= next_column && last < plan.spec.weight.s);
    if (slice + 2 == g.tiling().slices) next_column = last + 1;
    unit += 2;
  }
  RC_ASSERT(unit == g.units() && next_column == plan.spec.weight.s);
}

RC_GTEST_PROP(WgmmaRowsSourceProperty, SignaturesAndLaunchesComeFromOneList, ()) {
  const ConvPlan plan = some_plan();
  const KernelSource source = generate(plan);
  RC_ASSERT(source.entries.size() == 2u && source.entries[0].packs_weights && source.entries[1].starts_early);
  RC_ASSERT(source.entries[1].name == kernel_name(plan));
  // Host execution runs kernels one after the other, and would not miss the wait for packed weights.
  const KernelText convolution = functions_of(plan.family()).emit(plan.convolution(), "kernel");
  RC_ASSERT(convolution.text.find("wait_for_previous_kernel();") != std::string::npos);
  for (const KernelEntry& entry : source.entries) {
    const std::string declaration = entry.name + "(" + parameter_list(entry.arguments) + ") {\n";
    RC_ASSERT(test::squeezed(source.text).find(test::squeezed(declaration)) != std::string::npos);
  }
}

}  // namespace
}  // namespace jitconv::codegen
