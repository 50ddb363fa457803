// Pixels of NCHW tensors that a kernel before the convolution transposes (transposes_input): what is convolved then
// is what was asked for, and the tensor that is made has the pixels that its taps meet. How TMA copies
// it is the subject of wgmma_im2col_test.cpp.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "codegen/arithmetic.h"
#include "codegen/source.h"
#include "codegen/transpose_input/pass.h"
#include "fmt/format.h"
#include "unit/codegen/kernel_bodies.h"
#include "unit/codegen/wgmma_candidates.h"

namespace jitconv::codegen {
namespace {

using test::body_of;
using test::times;
using test::waits_before;
using test::WgmmaCandidate;

std::vector<WgmmaCandidate> transposed(const ConvSpec& spec) {
  std::vector<WgmmaCandidate> all = test::wgmma_candidates(spec);
  std::erase_if(all, [](const WgmmaCandidate& one) { return !one.tiling.transposes_input(); });
  return all;
}

/// The text of the kernel that transposes: others have constants of the same names.
std::string transposing_text(const WgmmaCandidate& one) {
  for (const KernelPlan& kernel : one.plan.kernels)
    if (kernel.family() == Family::transpose_input) return transpose_input::emit(kernel, "transposes").text;
  throw std::logic_error("no kernel transposes");
}

std::int64_t transposed_bytes(const ConvPlan& plan) { return test::scratch_bytes(plan.scratch, "transposed_x"); }

/// A constant of the text.
std::int64_t constant(const std::string& text, const std::string& name) {
  const std::string before = fmt::format(" {} = ", name);
  const std::size_t at = text.find(before);
  RC_ASSERT(at != std::string::npos);
  return std::stoll(text.substr(at + before.size()));
}

/// Whether a thread that transposes loads two pixels at a time.
bool loads_pairs(const std::string& text) { return constant(text, "kThreadPixels") == 2; }

std::int64_t place(const Axis& axis, std::int64_t output, std::int64_t tap) {
  return output * axis.stride - axis.pad + tap * axis.dilation;
}
bool has(const Axis& axis, std::int64_t place) { return place >= 0 && place < axis.input; }

/// Place `i` of the transposed axis is place first + i * step of x's: every tap of every output meets the same pixel,
/// or padding, in both.
void check_axis(const Axis& asked, const Axis& convolved, std::int64_t first, std::int64_t step) {
  RC_ASSERT(convolved.output == asked.output && convolved.taps == asked.taps);
  RC_ASSERT(convolved.input >= 1 && first + (convolved.input - 1) * step < asked.input);
  for (std::int64_t output = 0; output < asked.output; ++output) {
    for (std::int64_t tap = 0; tap < asked.taps; ++tap) {
      const std::int64_t before = place(asked, output, tap), after = place(convolved, output, tap);
      RC_ASSERT(has(asked, before) == has(convolved, after));
      if (has(asked, before)) RC_ASSERT(first + after * step == before);
    }
  }
}

RC_GTEST_PROP(WgmmaTransposedProperty, ConvolvesWhatWasAskedFor, ()) {
  ConvSpec spec = test::for_im2col(*test::valid_specs(), Layout::nchw);
  if (*rc::gen::inRange(0, 2) == 0) {  // one residue of rows or columns modulo the stride
    spec.stride = {1 + *rc::gen::inRange(0, 3), 1 + *rc::gen::inRange(0, 3)};
    spec.dilation = {spec.stride.h * (1 + *rc::gen::inRange(0, 2)), spec.stride.w * (1 + *rc::gen::inRange(0, 2))};
    spec.input.h += spec.weight.r * spec.dilation.h, spec.input.w += spec.weight.s * spec.dilation.w;
  }
  const std::vector<WgmmaCandidate> all = transposed(spec);
  RC_CLASSIFY(all.empty(), "no candidates");
  if (all.empty()) return;
  const WgmmaCandidate& one = all[*rc::gen::inRange<std::size_t>(0, all.size())];
  const Problem asked = join_groups(lower(one.plan.spec), one.tiling.joins_groups), &convolved = one.problem;
  RC_CLASSIFY(convolved.rows.stride != asked.rows.stride || convolved.columns.stride != asked.columns.stride,
              "a stride less");
  RC_ASSERT(asked.input.layout() == Layout::nchw && convolved.input.layout() == Layout::nhwc);
  RC_ASSERT(is_scratch(convolved.input.tensor));
  Problem same = convolved;  // but for the pixels of an image, and where weights and sums are
  same.input = asked.input, same.rows = asked.rows, same.columns = asked.columns;
  same.weight.tensor = asked.weight.tensor, same.output = asked.output;
  RC_ASSERT(same == asked);

  const std::string text = transposing_text(one);
  const std::int64_t width = asked.columns.input, first = constant(text, "kSourceFirst"),
                     step_h = constant(text, "kSourceStrideH") / width, step_w = constant(text, "kSourceStrideW");
  // Pairs are words of x, and none lies in two rows.
  RC_ASSERT(!loads_pairs(text) || (asked.input.element_bytes() == 2 && step_w == 1 && width % 2 == 0 &&
                                   convolved.columns.input % 2 == 0 && first % 2 == 0));
  RC_ASSERT(constant(text, "kSourceStrideH") % width == 0);
  check_axis(asked.rows, convolved.rows, first / width, step_h);
  check_axis(asked.columns, convolved.columns, first % width, step_w);
}

RC_GTEST_PROP(WgmmaTransposedProperty, BlocksMakeEveryRowOnce, ()) {
  const std::vector<WgmmaCandidate> all = transposed(test::for_im2col(*test::valid_specs(), Layout::nchw));
  RC_CLASSIFY(all.empty(), "no candidates");
  if (all.empty()) return;
  const WgmmaCandidate& one = all[*rc::gen::inRange<std::size_t>(0, all.size())];
  const KernelSource source = generate(one.plan);
  const KernelEntry& entry = source.entries[one.tiling.packs_weights() ? 1 : 0];
  const std::string text = transposing_text(one);
  const auto of = [&](const char* name) { return constant(text, name); };
  const std::int64_t threads = of("kThreads"), pixels = of("kTilePixels"), slices = of("kTileSlices");
  const std::int64_t of_thread = loads_pairs(text) ? 2 : 1;
  RC_ASSERT(entry.threads == threads && threads * of_thread % pixels == 0);
  RC_ASSERT(threads * of_thread / pixels == of("kSlicesAtOnce"));
  RC_ASSERT(of("kBatch") * of("kSlicesAtOnce") == slices);
  RC_ASSERT(of("kBatch") * of_thread * threads == pixels * slices && of("kTileRows") == pixels * slices);
  RC_ASSERT(of("kRowPitch") > slices && of("kRowPitch") % 2 == 1);
  RC_ASSERT(entry.shared_bytes == pixels * of("kRowPitch") * 16);
  // What of an image there is to make, and the tiles that make it.
  const Problem& problem = one.problem;
  const std::int64_t image = problem.input_plane(),
                     of_pixel = ceil_div(problem.input_channels(), one.geometry().slice_channels());
  RC_ASSERT(of("kPixels") == image && of("kPixelSlices") == of_pixel);
  RC_ASSERT(of("kSourceChannels") == problem.input_channels());
  RC_ASSERT(of("kAllPixels") == problem.n * image);
  RC_ASSERT(of("kSliceTiles") * slices >= of_pixel && (of("kSliceTiles") - 1) * slices < of_pixel);
  RC_ASSERT(entry.grid[0] == ceil_div(problem.n * image, pixels) * of("kSliceTiles"));
  RC_ASSERT(transposed_bytes(one.plan) >= problem.n * image * of_pixel * 16);
}

// Transposing starts early and lets the convolution start early: it waits itself, so that its end is the end of what
// packs weights too, and of the convolution all that ask for what either writes wait.
TEST(WgmmaTransposed, KernelsWaitForWhatTheyRead) {
  const ConvSpec spec = parse_spec("input=2,64,9,11 weight=72,64,1,1 stride=2 math=tf32"),
                 narrow = parse_spec("input=2,64,9,11 weight=24,64,3,3 math=tf32");
  const auto check = [](const std::vector<WgmmaCandidate>& all, bool packs_weights, bool resident) {
    const auto found = std::ranges::find_if(all, [&](const WgmmaCandidate& one) {
      return one.tiling.packs_weights() == packs_weights && one.tiling.keeps_weights() == resident &&
             one.tiling.split_k == 1;
    });
    ASSERT_NE(found, all.end());
    const KernelSource source = generate(found->plan);
    const std::size_t entry = packs_weights ? 1 : 0;
    ASSERT_EQ(source.entries.size(), entry + 2);
    EXPECT_EQ(source.entries[entry].starts_early, packs_weights);
    EXPECT_TRUE(source.entries[entry + 1].starts_early);
    const std::string transposing = body_of(source, entry), convolution = body_of(source, entry + 1);
    EXPECT_NE(transposing.find("let_next_kernel_start();"), std::string::npos);
    EXPECT_EQ(times(transposing, "wait_for_previous_kernel();"), entry);
    EXPECT_EQ(transposing.find("return"), std::string::npos) << "all of its blocks wait";
    EXPECT_TRUE(waits_before(convolution, "copy_run("));
    EXPECT_EQ(waits_before(convolution, "bulk_copy_to_shared("), packs_weights);
    // Weights as they lie in w wait for nobody.
    EXPECT_EQ(times(convolution, "if (warp == 0) wait_for_previous_kernel();"), packs_weights ? 0u : 1u);
    // Where two threads ask, both wait; one of them may only ask for weights, once.
    EXPECT_EQ(times(convolution, "wait_for_previous_kernel();"), resident ? 2u : 1u);
    EXPECT_EQ(convolution.find("let_next_kernel_start();"), std::string::npos);
  };
  check(transposed(spec), true, false);
  check(transposed(spec), false, false);
  check(transposed(narrow), true, true);
}

TEST(WgmmaTransposed, ArgumentsAreATensorAndThenItsMap) {
  const WgmmaCandidate one = transposed(parse_spec("input=2,18,9,11 weight=24,18,3,3 math=tf32")).front();
  const KernelSource source = generate(one.plan);
  const std::vector<Argument>& transposes = source.entries[1].arguments;
  ASSERT_EQ(transposes.size(), 2u);
  EXPECT_EQ(transposes[0].tensor, Tensor::x);
  EXPECT_EQ(transposes[1].tensor, scratch_tensor(1));
  EXPECT_TRUE(transposes[1].written());
  const Argument& map = source.entries[2].arguments.front();
  EXPECT_EQ(map.tensor, scratch_tensor(1));
  // 18 channels are four whole slices and a half: of a pixel's 20, copies read 18.
  EXPECT_EQ(map.map.extents, (std::array<std::int64_t, 4>{18, 11, 9, 2}));
  EXPECT_EQ(map.map.strides, (std::array<std::int64_t, 4>{1, 20, 220, 1980}));
  EXPECT_EQ(transposed_bytes(one.plan), round_up(std::int64_t{2} * 9 * 11 * 20 * 4, 256));
}

TEST(WgmmaTransposed, LeavesRowsAndColumnsThatNoTapMeets) {
  const auto convolved = [](const char* text) {
    return transposed_problem(lower(canonical(parse_spec(fmt::format("{} math=tf32", text)))));
  };
  const Problem strided = convolved("input=2,32,15,17 weight=24,32,1,1 stride=2,3");
  EXPECT_EQ(strided.n, 2);
  EXPECT_EQ(strided.input_channels(), 32);
  EXPECT_EQ(strided.rows, (Axis{.input = 8, .output = 8}));
  EXPECT_EQ(strided.columns, (Axis{.input = 6, .output = 6}));
  // From row 1 on: row -1 is the first output's.
  const Problem padded = convolved("input=2,32,15,17 weight=24,32,1,1 stride=2 padding=1,0");
  EXPECT_EQ(padded.rows, (Axis{.input = 7, .output = 9, .pad = 1}));
  EXPECT_EQ(padded.columns, (Axis{.input = 9, .output = 9}));
  // Dilation leaves one residue of rows, of columns there are two.
  const Problem dilated = convolved("input=2,32,15,17 weight=24,32,3,3 stride=2 dilation=4,1");
  EXPECT_EQ(dilated.rows, (Axis{.input = 8, .output = 4, .taps = 3, .stride = 1, .dilation = 2}));
  EXPECT_EQ(dilated.columns, (Axis{.input = 17, .output = 8, .taps = 3, .stride = 2, .dilation = 1}));
  // All taps lie in the padding, but there is a pixel in every tensor.
  EXPECT_EQ(convolved("input=2,32,1,17 weight=24,32,1,1 stride=2,1 padding=1,0").rows.input, 1);
}

const WgmmaTiling* wgmma_tiling(const ConvPlan& plan) { return plan.tiling<WgmmaTiling>(); }

// Measured on an H200: 0.135 ms, and 0.158 ms of the best that was not transposed.
TEST(WgmmaTransposed, IsTheChoiceWhereManyTilesTakeThePixels) {
  const ConvSpec spec = parse_spec("input=16,256,20,84 weight=512,256,5,5 stride=2 padding=1 math=tf32");
  const ConvPlan chosen = make_plan(spec, parse_target("sm_90a"));
  ASSERT_NE(wgmma_tiling(chosen), nullptr);
  EXPECT_TRUE(wgmma_tiling(chosen)->transposes_input());
}

// 23.1 us as they lie, and the copy alone moves 26 MB.
TEST(WgmmaTransposed, IsNoChoiceWhereFewDo) {
  const ConvSpec spec = parse_spec("input=16,64,56,56 weight=64,64,3,3 padding=1 math=tf32");
  const ConvPlan chosen = make_plan(spec, parse_target("sm_90a"));
  ASSERT_NE(wgmma_tiling(chosen), nullptr);
  EXPECT_FALSE(wgmma_tiling(chosen)->transposes_input());
  ASSERT_FALSE(transposed(spec).empty());
}

// One output in 132 x 132 pixels: no tile of those is small enough for shared memory.
TEST(WgmmaTransposed, IsTheChoiceWhereNothingElseIs) {
  const ConvSpec spec = parse_spec("input=1,16,8712,8712 weight=64,16,1,1 stride=132 math=tf32");
  const ConvPlan chosen = make_plan(spec, parse_target("sm_90a"));
  ASSERT_NE(wgmma_tiling(chosen), nullptr);
  EXPECT_TRUE(wgmma_tiling(chosen)->transposes_input());
  EXPECT_EQ(chosen.family(), Family::wgmma);
}

TEST(WgmmaTransposed, MakesNoWorkspaceOfMoreThan256MB) {
  EXPECT_FALSE(transposed(parse_spec("input=16,64,256,256 weight=64,64,1,1 math=tf32")).empty());
  EXPECT_TRUE(transposed(parse_spec("input=16,64,256,257 weight=64,64,1,1 math=tf32")).empty());
}

}  // namespace
}  // namespace jitconv::codegen
