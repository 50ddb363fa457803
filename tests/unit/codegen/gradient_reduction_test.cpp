// The pass that adds the partial sums of dw where they lie as [tap][k][c]: how many filters a block brings together,
// and that its launch covers all of them and db. What it computes is the host tests' to check.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "codegen/plan.h"
#include "codegen/reduce/tiling.h"

namespace jitconv::codegen {
namespace {

/// The pass behind the first plan that the wgrad_wgmma family has.
KernelPlan last_pass(const std::string& text) {
  const ConvSpec spec = parse_spec(text + " operation=weight_gradient");
  for (const ConvPlan& plan : enumerate_plans(spec, parse_target("sm_90a"), SIZE_MAX))
    if (plan.family() == Family::wgrad_wgmma) return plan.kernels.back();
  ADD_FAILURE() << "no plan of wgrad_wgmma: " << text;
  return {};
}

struct Expected {
  const char* spec;
  int block_filters;
  std::uint32_t blocks, shared_bytes;
};

TEST(GradientReduction, BringsTheTapsOfSeveralFiltersTogether) {
  for (const Expected& one : {
           Expected{"input=4,1280,16,16 weight=1280,1280,3,3 padding=1 math=tf32", 128, 12'800, 128 * 9 * 4},
           Expected{"input=4,1280,16,16 weight=1280,1280,3,3 padding=1 math=tf32 bias", 128, 12'800 + 5, 128 * 9 * 4},
           // Few filters: as many blocks as leave whole sectors.
           Expected{"input=8,64,64,64 weight=128,64,5,9 math=tf32", 8, 1'024, 8 * 45 * 4},
           // The last block has fewer filters.
           Expected{"input=4,61,16,16 weight=68,61,3,3 padding=1 math=tf32 bias", 8, 519 + 1, 8 * 9 * 4},
           // Many taps: as many filters as shared memory has place for.
           Expected{"input=8,1024,24,24 weight=1024,1024,13,13 padding=6 dtype=bf16", 64, 16'384, 64 * 169 * 4},
       }) {
    SCOPED_TRACE(one.spec);
    const KernelPlan pass = last_pass(one.spec);
    ASSERT_EQ(pass.family(), Family::reduce);
    EXPECT_EQ(std::get<ReduceTiling>(pass.tiling).block_filters, one.block_filters);
    EXPECT_EQ(pass.launch.blocks, one.blocks);
    EXPECT_EQ(pass.launch.shared_bytes, one.shared_bytes);
  }
}

TEST(GradientReduction, ASingleTapIsInTheOrderOfDw) {
  const KernelPlan pass = last_pass("input=8,256,28,28 weight=256,256,1,1 math=tf32 bias");
  EXPECT_EQ(std::get<ReduceTiling>(pass.tiling).block_filters, 0);
  EXPECT_EQ(pass.launch.blocks, 257u) << "a thread for each of dw and db";
  EXPECT_EQ(pass.launch.shared_bytes, 0u);
}

TEST(GradientReduction, TakesAsManyTapsAsSharedMemoryHolds) {
  const auto serves = [](const std::string& text) {
    const ConvPlan plan = make_plan(parse_spec(text + " math=tf32 operation=weight_gradient"), parse_target("sm_90a"));
    return std::none_of(plan.notes.begin(), plan.notes.end(), [](const Note& note) {
      return note.topic == "wgrad_wgmma" && note.text.find("taps, at most 12288") != std::string::npos;
    });
  };
  EXPECT_TRUE(serves("input=1,8,200,200 weight=16,8,96,128"));
  EXPECT_FALSE(serves("input=1,8,200,200 weight=16,8,97,127"));
}

}  // namespace
}  // namespace jitconv::codegen
