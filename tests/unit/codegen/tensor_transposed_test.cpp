// Pixels of NCHW tensors that a kernel before the convolution transposes (Pixels::transposed): what is convolved then
// is what was asked for, and the tensor that is made has the pixels that its taps meet. How the copy engine walks over
// it is the subject of tensor_walks_test.cpp.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "codegen/arithmetic.h"
#include "codegen/source.h"
#include "fmt/format.h"
#include "unit/codegen/kernel_bodies.h"
#include "unit/codegen/tensor_candidates.h"

namespace jitconv::codegen {
namespace {

using test::body_of;
using test::TensorCandidate;
using test::times;
using test::waits_before;

std::vector<TensorCandidate> transposed(const ConvSpec& spec) {
  std::vector<TensorCandidate> all = test::tensor_candidates(spec);
  std::erase_if(all, [](const TensorCandidate& one) { return !one.tiling.transposes_pixels(); });
  return all;
}

/// A constant of the text.
std::int64_t constant(const std::string& text, const std::string& name) {
  const std::string before = fmt::format(" {} = ", name);
  const std::size_t at = text.find(before);
  RC_ASSERT(at != std::string::npos);
  return std::stoll(text.substr(at + before.size()));
}

/// An axis of both convolutions: extents, places before them, strides, dilations.
struct Axis {
  std::int64_t extent, before, stride, dilation;
  std::int64_t place(std::int64_t output, std::int64_t tap) const { return output * stride - before + tap * dilation; }
  bool has(std::int64_t place) const { return place >= 0 && place < extent; }
};

/// Place `i` of the transposed axis is place first + i * step of x's: every tap of every output meets the same pixel,
/// or padding, in both.
void check_axis(const Axis& asked, const Axis& convolved, std::int64_t first, std::int64_t step, std::int64_t taps,
                std::int64_t outputs) {
  RC_ASSERT(convolved.extent >= 1 && first + (convolved.extent - 1) * step < asked.extent);
  for (std::int64_t output = 0; output < outputs; ++output) {
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      const std::int64_t place = asked.place(output, tap), after = convolved.place(output, tap);
      RC_ASSERT(asked.has(place) == convolved.has(after));
      if (asked.has(place)) RC_ASSERT(first + after * step == place);
    }
  }
}

RC_GTEST_PROP(TensorTransposedProperty, ConvolvesWhatWasAskedFor, ()) {
  ConvSpec spec = test::for_walks(*test::valid_specs(), Layout::nchw);
  if (*rc::gen::inRange(0, 2) == 0) {  // one residue of rows or columns modulo the stride
    spec.stride = {1 + *rc::gen::inRange(0, 3), 1 + *rc::gen::inRange(0, 3)};
    spec.dilation = {spec.stride.h * (1 + *rc::gen::inRange(0, 2)), spec.stride.w * (1 + *rc::gen::inRange(0, 2))};
    spec.input.h += spec.weight.r * spec.dilation.h, spec.input.w += spec.weight.s * spec.dilation.w;
  }
  const std::vector<TensorCandidate> all = transposed(spec);
  RC_CLASSIFY(all.empty(), "no candidates");
  if (all.empty()) return;
  const TensorCandidate& one = all[*rc::gen::inRange<std::size_t>(0, all.size())];
  const ConvSpec &asked = one.plan.spec, &convolved = one.spec;
  RC_CLASSIFY(convolved.stride != asked.stride, "a stride less");
  RC_ASSERT(asked.input_layout == Layout::nchw && convolved.input_layout == Layout::nhwc);
  RC_ASSERT(output_shape(convolved) == output_shape(asked));
  RC_ASSERT(convolved.input.n == asked.input.n && convolved.input.c == asked.input.c);
  ConvSpec same = convolved;  // but for the pixels of an image
  same.input = asked.input, same.input_layout = Layout::nchw;
  same.stride = asked.stride, same.padding = asked.padding, same.dilation = asked.dilation;
  RC_ASSERT(same == asked);

  const std::string text = generate(one.plan).text;
  const std::int64_t first = constant(text, "kSourceFirst"), step_h = constant(text, "kSourceStrideH") / asked.input.w,
                     step_w = constant(text, "kSourceStrideW");
  RC_ASSERT(constant(text, "kSourceStrideH") % asked.input.w == 0);
  const TensorShape out = output_shape(asked);
  check_axis({asked.input.h, asked.padding.top, asked.stride.h, asked.dilation.h},
             {convolved.input.h, convolved.padding.top, convolved.stride.h, convolved.dilation.h},
             first / asked.input.w, step_h, asked.weight.r, out.h);
  check_axis({asked.input.w, asked.padding.left, asked.stride.w, asked.dilation.w},
             {convolved.input.w, convolved.padding.left, convolved.stride.w, convolved.dilation.w},
             first % asked.input.w, step_w, asked.weight.s, out.w);
}

RC_GTEST_PROP(TensorTransposedProperty, BlocksMakeEveryRowOnce, ()) {
  const std::vector<TensorCandidate> all = transposed(test::for_walks(*test::valid_specs(), Layout::nchw));
  RC_CLASSIFY(all.empty(), "no candidates");
  if (all.empty()) return;
  const TensorCandidate& one = all[*rc::gen::inRange<std::size_t>(0, all.size())];
  const KernelSource source = generate(one.plan);
  const KernelEntry& entry = source.entries[one.tiling.packs_weights() ? 1 : 0];
  const auto of = [&](const char* name) { return constant(source.text, name); };
  const std::int64_t threads = of("kTransposeThreads"), pixels = of("kTilePixels"), slices = of("kTileSlices");
  RC_ASSERT(entry.threads == threads && threads % pixels == 0 && threads / pixels == of("kSlicesAtOnce"));
  RC_ASSERT(of("kTransposeBatch") * of("kSlicesAtOnce") == slices);
  RC_ASSERT(of("kTransposeBatch") * threads == pixels * slices);
  RC_ASSERT(of("kRowPitch") > slices && of("kRowPitch") % 2 == 1);
  RC_ASSERT(entry.shared_bytes == pixels * of("kRowPitch") * 16);
  // What of an image there is to make, and the tiles that make it.
  const std::int64_t image = one.spec.input.h * one.spec.input.w,
                     of_pixel = ceil_div(one.spec.input.c, WgmmaTiling::slice_channels(one.spec));
  RC_ASSERT(of("kPixels") == image && of("kPixelSlices") == of_pixel && of("kSourceChannels") == one.spec.input.c);
  RC_ASSERT(of("kPixelTiles") * pixels >= image && (of("kPixelTiles") - 1) * pixels < image);
  RC_ASSERT(of("kSliceTiles") * slices >= of_pixel && (of("kSliceTiles") - 1) * slices < of_pixel);
  RC_ASSERT(entry.grid[0] == one.spec.input.n * of("kPixelTiles") * of("kSliceTiles"));
  RC_ASSERT(one.plan.workspace.packed_pixels >= one.spec.input.n * image * of_pixel * 16);
}

// Transposing starts early and lets the convolution start early: it waits itself, so that its end is the end of what
// packs weights too, and of the convolution all that ask for what either writes wait.
TEST(TensorTransposed, KernelsWaitForWhatTheyRead) {
  const ConvSpec spec = parse_spec("input=2,64,9,11 weight=72,64,1,1 stride=2 math=tf32"),
                 narrow = parse_spec("input=2,64,9,11 weight=24,64,3,3 math=tf32");
  const auto check = [](const std::vector<TensorCandidate>& all, bool packs_weights, bool resident) {
    const auto found = std::ranges::find_if(all, [&](const TensorCandidate& one) {
      return one.tiling.packs_weights() == packs_weights && one.tiling.resident == resident && one.tiling.splits == 1;
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
    // Of two threads that ask, both wait; one of them may only ask for weights, once.
    EXPECT_EQ(times(convolution, "wait_for_previous_kernel();"), resident ? 2u : 1u);
    EXPECT_EQ(convolution.find("let_next_kernel_start();"), std::string::npos);
  };
  check(transposed(spec), true, false);
  check(transposed(spec), false, false);
  check(transposed(narrow), true, true);
}

TEST(TensorTransposed, ArgumentsAreATensorAndThenItsMap) {
  const TensorCandidate one = transposed(parse_spec("input=2,18,9,11 weight=24,18,3,3 math=tf32")).front();
  const KernelSource source = generate(one.plan);
  const std::vector<Argument>& transposes = source.entries[1].arguments;
  ASSERT_EQ(transposes.size(), 2u);
  EXPECT_EQ(transposes[0].role, Tensor::x);
  EXPECT_EQ(transposes[1].role, Tensor::packed_x);
  EXPECT_TRUE(transposes[1].written());
  const Argument& map = source.entries[2].arguments.front();
  EXPECT_EQ(map.role, Tensor::packed_x);
  // 18 channels are four whole slices and a half: of a pixel's 20, copies read 18.
  EXPECT_EQ(map.map.extents, (std::array<std::int64_t, 4>{18, 11, 9, 2}));
  EXPECT_EQ(map.map.strides, (std::array<std::int64_t, 4>{1, 20, 220, 1980}));
  EXPECT_EQ(one.plan.workspace.packed_pixels, round_up(std::int64_t{2} * 9 * 11 * 20 * 4, 256));
}

TEST(TensorTransposed, LeavesRowsAndColumnsThatNoTapMeets) {
  const WgmmaTiling tiling{.pixels = WgmmaTiling::Pixels::transposed};
  const auto convolved = [&](const char* text) {
    return tiling.convolved_spec(canonical(parse_spec(fmt::format("{} math=tf32", text))));
  };
  const ConvSpec strided = convolved("input=2,32,15,17 weight=24,32,1,1 stride=2,3");
  EXPECT_EQ(strided.input, (TensorShape{2, 32, 8, 6}));
  EXPECT_EQ(strided.stride, Size2(1));
  // From row 1 on: row -1 is the first output's.
  const ConvSpec padded = convolved("input=2,32,15,17 weight=24,32,1,1 stride=2 padding=1,0");
  EXPECT_EQ(padded.input, (TensorShape{2, 32, 7, 9}));
  EXPECT_EQ(padded.padding, Padding(1, 1, 0, 0));
  // Dilation leaves one residue of rows, of columns there are two.
  const ConvSpec dilated = convolved("input=2,32,15,17 weight=24,32,3,3 stride=2 dilation=4,1");
  EXPECT_EQ(dilated.input, (TensorShape{2, 32, 8, 17}));
  EXPECT_EQ(dilated.stride, Size2(1, 2));
  EXPECT_EQ(dilated.dilation, Size2(2, 1));
  // All taps lie in the padding, but there is a pixel in every tensor.
  EXPECT_EQ(convolved("input=2,32,1,17 weight=24,32,1,1 stride=2,1 padding=1,0").input.h, 1);
}

const WgmmaTiling* tensor_tiling(const ConvPlan& plan) { return plan.tiling<WgmmaTiling>(); }

// Measured on an H200: 0.135 ms, and 0.158 ms of the best that was not transposed.
TEST(TensorTransposed, IsTheChoiceWhereManyTilesTakeThePixels) {
  const ConvSpec spec = parse_spec("input=16,256,20,84 weight=512,256,5,5 stride=2 padding=1 math=tf32");
  const ConvPlan chosen = make_plan(spec, parse_target("sm_90a"));
  ASSERT_NE(tensor_tiling(chosen), nullptr);
  EXPECT_TRUE(tensor_tiling(chosen)->transposes_pixels());
}

// 23.1 us as they lie, and the copy alone moves 26 MB.
TEST(TensorTransposed, IsNoChoiceWhereFewDo) {
  const ConvSpec spec = parse_spec("input=16,64,56,56 weight=64,64,3,3 padding=1 math=tf32");
  const ConvPlan chosen = make_plan(spec, parse_target("sm_90a"));
  ASSERT_NE(tensor_tiling(chosen), nullptr);
  EXPECT_FALSE(tensor_tiling(chosen)->transposes_pixels());
  ASSERT_FALSE(transposed(spec).empty());
}

// One output in 132 x 132 pixels: no tile of those is small enough for shared memory.
TEST(TensorTransposed, IsTheChoiceWhereNothingElseIs) {
  const ConvSpec spec = parse_spec("input=1,16,8712,8712 weight=64,16,1,1 stride=132 math=tf32");
  const ConvPlan chosen = make_plan(spec, parse_target("sm_90a"));
  ASSERT_NE(tensor_tiling(chosen), nullptr);
  EXPECT_TRUE(tensor_tiling(chosen)->transposes_pixels());
  EXPECT_EQ(chosen.family, Family::wgmma);
}

TEST(TensorTransposed, MakesNoWorkspaceOfMoreThan256MB) {
  EXPECT_FALSE(transposed(parse_spec("input=16,64,256,256 weight=64,64,1,1 math=tf32")).empty());
  EXPECT_TRUE(transposed(parse_spec("input=16,64,256,257 weight=64,64,1,1 math=tf32")).empty());
}

}  // namespace
}  // namespace jitconv::codegen
