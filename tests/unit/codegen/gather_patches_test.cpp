// Statements about gather_patches/: what remains is a 1x1 convolution with the same outputs and products, the kernel
// makes every row once, and a load brings neighbours that lie in one row of x.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "codegen/arithmetic.h"
#include "codegen/gather_patches/tiling.h"
#include "codegen/source.h"
#include "fmt/format.h"
#include "support/plan_kernels.h"
#include "unit/codegen/kernel_bodies.h"
#include "unit/codegen/wgmma_candidates.h"

namespace jitconv::codegen {
namespace {

using test::WgmmaCandidate;

std::vector<WgmmaCandidate> gathered(const ConvSpec& spec) {
  std::vector<WgmmaCandidate> all = test::wgmma_candidates(spec);
  std::erase_if(all, [](const WgmmaCandidate& one) { return !one.tiling.gathers_patches(); });
  return all;
}

int load_elements(const std::string& text) {
  return gather_patches_tiling(lower(canonical(parse_spec(text + " math=tf32")))).load_elements();
}

TEST(GatherPatches, LoadsNeighboursThatLieInOneRowOfX) {
  EXPECT_EQ(load_elements("input=2,3,32,32 weight=64,3,4,4 stride=4"), 4);
  EXPECT_EQ(load_elements("input=2,3,32,48 weight=64,3,16,16 stride=16 dtype=bf16"), 8);
  EXPECT_EQ(load_elements("input=2,3,28,28 weight=64,3,14,14 stride=14 dtype=bf16"), 2);
  // Filter rows, strides, paddings and rows of x that are no multiples; apart in x.
  EXPECT_EQ(load_elements("input=2,3,32,32 weight=64,3,4,2 stride=4"), 2);
  EXPECT_EQ(load_elements("input=2,3,32,32 weight=64,3,4,3 stride=4"), 1);
  EXPECT_EQ(load_elements("input=2,3,32,32 weight=64,3,4,4 stride=4,6"), 2);
  EXPECT_EQ(load_elements("input=2,3,32,32 weight=64,3,4,4 stride=4 padding=0,2"), 2);
  EXPECT_EQ(load_elements("input=2,3,32,30 weight=64,3,4,4 stride=4"), 2);
  EXPECT_EQ(load_elements("input=2,3,32,32 weight=64,3,4,4 stride=4 dilation=1,2"), 1);
  EXPECT_EQ(load_elements("input=2,3,32,32 weight=64,3,4,4 stride=4 layout=nhwc"), 1);
  // Tensors that may start anywhere.
  EXPECT_EQ(load_elements("input=2,3,32,32 weight=64,3,4,4 stride=4 alignment=8"), 2);
  EXPECT_EQ(load_elements("input=2,3,32,32 weight=64,3,4,4 stride=4 alignment=4"), 1);
}

TEST(GatherPatches, ServesFewChannelsThatOverlapLittle) {
  EXPECT_FALSE(gathered(parse_spec("input=2,3,224,224 weight=64,3,16,16 stride=16 math=tf32")).empty());
  EXPECT_FALSE(gathered(parse_spec("input=2,16,32,32 weight=64,16,2,2 stride=2 dtype=bf16")).empty());
  for (const char* text :
       {"input=2,17,32,32 weight=64,17,2,2 stride=2 math=tf32",           // many channels
        "input=2,6,32,32 weight=64,3,2,2 stride=2 groups=2 math=tf32",    // groups
        "input=2,3,32,32 weight=64,3,1,1 stride=2 math=tf32",             // one tap
        "input=2,3,64,64 weight=64,3,7,7 stride=3 padding=3 math=tf32",   // each pixel five times
        "input=64,8,1024,1024 weight=64,8,2,2 stride=2 math=tf32",        // much memory
        "input=1,1,60000,60000 weight=768,1,16,16 stride=96 dtype=bf16",  // an image of 2^31 elements
        "input=2,64,31,31 weight=8,64,2,2 operation=data_gradient math=tf32"})
    EXPECT_TRUE(gathered(parse_spec(text)).empty()) << text;
}

TEST(GatherPatches, IsChosenForPatchEmbeddings) {
  for (const char* text : {"dtype=bf16", "dtype=bf16 layout=nhwc", "math=tf32", "math=tf32 layout=nhwc", "math=fp32"}) {
    const ConvPlan plan =
        make_plan(parse_spec(fmt::format("input=32,3,224,224 weight=768,3,16,16 stride=16 bias {}", text)),
                  parse_target("sm_90a"));
    const auto* tiling = plan.tiling<WgmmaTiling>();
    ASSERT_NE(tiling, nullptr) << text;
    EXPECT_TRUE(tiling->gathers_patches()) << text;
    EXPECT_NE(to_string(plan).find("patches, gathered before"), std::string::npos) << text;
  }
}

// What packs reads patches when they are finished, and so does a gradient that reads them itself.
TEST(GatherPatches, ComesBeforeWhatPacksPatchesForWeightGradients) {
  const auto plan = [](const char* text) {
    return make_plan(parse_spec(fmt::format("input=32,3,224,224 weight=768,3,16,16 stride=16 bias {} "
                                            "operation=weight_gradient",
                                            text)),
                     parse_target("sm_90a"));
  };
  const ConvPlan packed = plan("math=tf32"), direct = plan("dtype=bf16 layout=nhwc");
  EXPECT_EQ(test::kernels_of(packed), "gather_patches pack_pixels wgrad_wgmma reduce");
  EXPECT_FALSE(packed.kernels[1].starts_early);
  EXPECT_TRUE(packed.kernels[2].starts_early);
  EXPECT_EQ(test::kernels_of(direct), "gather_patches wgrad_wgmma reduce");
  EXPECT_FALSE(direct.kernels[1].starts_early);
  EXPECT_NE(to_string(direct).find("x: patches, gathered before"), std::string::npos);
}

// dw has no more channels than a patch has elements, of which some end inside a row of 16 bytes.
TEST(GatherPatches, OfWeightGradientsMayEndInsideARow) {
  for (const char* text : {"weight=768,3,16,16 stride=16", "weight=768,3,14,14 stride=14"}) {
    const ConvPlan plan =
        make_plan(parse_spec(fmt::format("input=32,3,224,224 {} dtype=bf16 operation=weight_gradient", text)),
                  parse_target("sm_90a"));
    const auto* tiling = plan.tiling<WgradWgmmaTiling>();
    ASSERT_NE(tiling, nullptr) << text;
    EXPECT_TRUE(tiling->gathers_patches) << text;
    EXPECT_EQ(plan.convolution().problem.c, plan.spec.weight.c * plan.spec.weight.r * plan.spec.weight.s);
  }
}

RC_GTEST_PROP(GatherPatchesProperty, LeavesAConvolutionOfPatches, ()) {
  ConvSpec spec = test::for_tensor_cores(*test::valid_specs({}));
  spec.stride = {1 + *rc::gen::inRange(0, 4), 1 + *rc::gen::inRange(0, 4)};
  const std::vector<WgmmaCandidate> all = gathered(spec);
  RC_CLASSIFY(all.empty(), "no candidates");
  if (all.empty()) return;
  const WgmmaCandidate& one = all[*rc::gen::inRange<std::size_t>(0, all.size())];
  const Problem asked = lower(one.plan.spec), &patches = one.problem;
  RC_ASSERT(patches.n == asked.n && patches.k == asked.k && patches.groups == 1);
  RC_ASSERT(patches.c == asked.c * asked.taps() && patches.taps() == 1);
  for (const auto& [axis, source] : {std::pair{patches.rows, asked.rows}, std::pair{patches.columns, asked.columns}}) {
    RC_ASSERT(axis.is_pointwise() && axis.stride == 1);
    RC_ASSERT(axis.input == source.output && axis.output == source.output);
  }
  RC_ASSERT(patches.output.stride == asked.output.stride && patches.epilogue == asked.epilogue);
  RC_ASSERT(patches.weight.stride.n == asked.weight.stride.n && patches.weight.stride.c == 1);
  // Pixels are whole rows, and there is room for all of them.
  const std::int64_t bytes = patches.input.element_bytes(), pixel = patches.input.stride.w;
  RC_ASSERT(pixel * bytes % 16 == 0 && pixel >= patches.c && (pixel - patches.c) * bytes < 16);
  RC_ASSERT(test::scratch_bytes(one.plan.scratch, "patches") >= patches.n * patches.input_plane() * pixel * bytes);

  const std::size_t entry = one.tiling.packs_weights() ? 1 : 0;
  const KernelSource source = generate(one.plan);
  const KernelEntry& gathering = source.entries[entry];
  RC_ASSERT(gathering.name.ends_with("_gather_patches") && gathering.shared_bytes == 0);
  const std::int64_t rows = patches.n * patches.input_plane() * (pixel * bytes / 16);
  RC_ASSERT(gathering.grid[0] == ceil_div(rows, std::int64_t{gathering.threads}));
  // The kernels behind it start while it runs, and wait before they read what any kernel before has made.
  RC_ASSERT(gathering.starts_early == (entry == 1) && source.entries[entry + 1].starts_early);
  const std::string text = test::body_of(source, entry);
  RC_ASSERT(test::times(text, "wait_for_previous_kernel();") == entry);
  RC_ASSERT(test::times(test::body_of(source, entry + 1), "wait_for_previous_kernel();") >= 1u);
}

}  // namespace
}  // namespace jitconv::codegen
