// Groups that the wgmma family joins: how many, where not, and what the plan says of it.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "codegen/wgmma/limits.h"
#include "unit/codegen/wgmma_candidates.h"

namespace jitconv::codegen {
namespace {

using test::wgmma_candidates;
using test::WgmmaCandidate;

/// How many groups the family's candidates join: 1 for none.
std::set<int> joined(const std::string& spec) {
  std::set<int> counts;
  for (const WgmmaCandidate& one : wgmma_candidates(parse_spec(spec))) counts.insert(one.tiling.joins_groups);
  return counts;
}

using Counts = std::set<int>;

TEST(WgmmaJoinedGroups, FillTheRowsOfAMultiplication) {
  EXPECT_EQ(joined("input=2,128,14,14 weight=128,4,3,3 groups=32 math=tf32"), Counts{16});
  EXPECT_EQ(joined("input=2,96,14,14 weight=160,6,3,3 groups=16 dtype=bf16"), Counts{4}) << "16 has no divisor 6 or 5";
  EXPECT_EQ(joined("input=2,70,14,14 weight=70,10,3,3 groups=7 math=tf32"), Counts{}) << "7 has no divisor up to 6";
  EXPECT_EQ(joined("input=2,16,14,14 weight=16,4,3,3 groups=4 math=tf32"), Counts{4}) << "16 rows of 64";
  EXPECT_EQ(joined("input=2,512,14,14 weight=512,32,3,3 groups=16 dtype=f16"), (Counts{1, 2}));
  EXPECT_EQ(joined("input=2,256,14,14 weight=256,64,3,3 groups=4 math=tf32"), Counts{1}) << "one fills them";
  EXPECT_EQ(joined("input=2,512,14,14 weight=64,64,3,3 groups=8 math=tf32"), (Counts{1, 4})) << "256 products of a tap";
}

TEST(WgmmaJoinedGroups, AreNotOfOneChannel) {
  EXPECT_EQ(joined("input=2,64,14,14 weight=128,1,3,3 groups=64 math=tf32"), Counts{});
  EXPECT_EQ(joined("input=2,128,14,14 weight=64,2,3,3 groups=64 math=tf32"), Counts{});
}

TEST(WgmmaJoinedGroups, KeepFp32AndIeeeApart) {
  EXPECT_EQ(joined("input=2,128,14,14 weight=128,4,3,3 groups=32"), Counts{}) << "an infinity would reach other groups";
  EXPECT_EQ(joined("input=2,128,14,14 weight=128,4,3,3 groups=32 math=ieee"), Counts{});
  EXPECT_EQ(joined("input=2,512,14,14 weight=512,32,3,3 groups=16"), Counts{1});
}

TEST(WgmmaJoinedGroups, FillThemWithPixelsOfOnePhase) {
  const std::string gradient =
      "operation=data_gradient input=2,128,14,14 weight=128,8,3,3 groups=16 stride=2 padding=1 ";
  for (const char* layout : {"layout=nhwc", "layout=nchw"})
    for (const WgmmaCandidate& one : wgmma_candidates(parse_spec(gradient + "math=tf32 " + layout))) {
      EXPECT_EQ(one.tiling.joins_groups, 8) << "not sums, which the pass behind reads group by group";
      EXPECT_TRUE(one.tiling.stores_pixels);
      EXPECT_EQ(one.problem.pixel_channels(), 64);
    }
}

TEST(WgmmaJoinedGroups, HaveDenseWeightsThatAKernelMakes) {
  for (const char* operation : {"forward", "data_gradient"})
    for (const WgmmaCandidate& one : wgmma_candidates(parse_spec(
             std::string("input=2,128,14,14 weight=128,8,1,1 groups=16 dtype=bf16 operation=") + operation))) {
      ASSERT_EQ(one.tiling.joins_groups, 8);
      EXPECT_TRUE(one.tiling.packs_weights());
      EXPECT_FALSE(one.tiling.folds_columns());
      const KernelPlan& packing = one.plan.kernels.front();
      ASSERT_EQ(packing.family(), Family::pack_weights);
      EXPECT_EQ(packing.problem.weight, lower(one.plan.spec).weight);
      EXPECT_EQ(packing.launch.shared_bytes, 0);
      EXPECT_EQ(one.problem.weight.group, 64 * 64);
    }
}

TEST(WgmmaJoinedGroups, AreNamedInThePlan) {
  const ConvPlan plan =
      make_plan(parse_spec("input=8,128,56,56 weight=128,4,3,3 padding=1 groups=32 dtype=bf16 layout=nhwc"),
                parse_target("sm_90a"));
  EXPECT_NE(to_string(plan).find("groups: 16 share multiplications"), std::string::npos) << to_string(plan);
}

TEST(WgmmaJoinedGroups, RowsBehindTheLastChannelAreLikeItsOwn) {
  bool ends = false, fills = false;
  for (const WgmmaCandidate& one :
       wgmma_candidates(parse_spec("input=2,48,14,14 weight=48,4,3,3 groups=12 padding=1 math=tf32"))) {
    ASSERT_EQ(one.problem.k, 48);
    const std::string text = functions_of(Family::pack_weights).emit(one.plan.kernels.front(), "kernel").text;
    EXPECT_NE(text.find("min(tile % kTilesK * kBlockK + k_of_tile, kGroupK - 1)"), std::string::npos);
    ends = true;
  }
  for (const WgmmaCandidate& one :
       wgmma_candidates(parse_spec("input=2,64,14,14 weight=64,4,3,3 groups=16 padding=1 math=tf32"))) {
    const std::string text = functions_of(Family::pack_weights).emit(one.plan.kernels.front(), "kernel").text;
    EXPECT_EQ(text.find("min("), std::string::npos);
    fills = true;
  }
  EXPECT_TRUE(ends && fills);
}

}  // namespace
}  // namespace jitconv::codegen
