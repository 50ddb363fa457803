// Strided data gradients whose pixels the wgmma family stores itself: which candidates there are, which taps their
// tiles multiply, and the text of both.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "codegen/wgmma/store.h"
#include "unit/codegen/squeezed.h"
#include "unit/codegen/wgmma_candidates.h"

namespace jitconv::codegen {
namespace {

using test::convolution_text;
using test::wgmma_candidates;
using test::WgmmaCandidate;

ConvSpec gradient(const std::string& more) {
  return parse_spec("operation=data_gradient stride=2 padding=1 math=tf32 " + more);
}

constexpr const char* kChannels = "input=8,128,28,28 weight=64,128,3,3 ";

TEST(WgmmaPhases, SumsAreLeftToInterleavingWhereTheyAreSplit) {
  for (const char* layout : {"layout=nhwc", "layout=nchw"}) {
    int storing = 0, splitting = 0;
    for (const WgmmaCandidate& one : wgmma_candidates(gradient(std::string(kChannels) + layout))) {
      EXPECT_EQ(one.tiling.stores_pixels, one.problem.phases.stores_pixels);
      EXPECT_NE(one.tiling.stores_pixels, one.tiling.split_k > 1) << to_string(one.plan);
      const bool reduces = one.plan.kernels.back().family() == Family::reduce;
      EXPECT_NE(one.tiling.stores_pixels, reduces) << to_string(one.plan);
      ++(one.tiling.stores_pixels ? storing : splitting);
    }
    EXPECT_GT(storing, 0) << layout;
    EXPECT_GT(splitting, 0) << layout;
  }
}

bool stores(const std::string& more) {
  const std::vector<WgmmaCandidate> all = wgmma_candidates(parse_spec("operation=data_gradient " + more));
  return std::ranges::any_of(all, [](const WgmmaCandidate& one) { return one.tiling.stores_pixels; });
}

TEST(WgmmaPhases, AreStoredAsPixelsIfWhatIsWrittenIsWhole) {
  EXPECT_TRUE(stores("input=2,4,12,12 weight=16,4,3,3 stride=2 padding=1 dtype=f16 layout=nhwc"));
  EXPECT_FALSE(stores("input=2,2,12,12 weight=16,2,3,3 stride=2 padding=1 dtype=f16 layout=nhwc"))
      << "a vector of two 16-bit channels";
  EXPECT_TRUE(stores("input=2,4,12,12 weight=16,4,3,3 stride=1,2 padding=1 math=tf32"));
  EXPECT_FALSE(stores("input=2,3,12,12 weight=16,3,3,3 stride=1,2 padding=1 math=tf32"))
      << "8 staged channels would be of two groups";
  EXPECT_FALSE(stores("input=2,8,12,12 weight=16,8,3,3 stride=1,3 padding=1 math=tf32"))
      << "8 staged channels are no whole pixels of three phases";
  EXPECT_TRUE(stores("input=2,8,12,12 weight=16,8,3,1 stride=1,2 padding=1,0 math=tf32"));
  EXPECT_FALSE(stores("input=2,8,12,11 weight=16,8,3,1 stride=1,2 padding=1,0 math=tf32"))
      << "the zero beside the last pixel is the next row's first";
  EXPECT_TRUE(stores("input=2,32,12,12 weight=32,2,3,3 groups=16 stride=2 padding=1 dtype=f16 layout=nhwc"))
      << "of joined groups, vectors are whole";
}

TEST(WgmmaPhases, SumsOfPixelsWithoutTapsAreInterleaved) {
  const std::vector<WgmmaCandidate> all = wgmma_candidates(gradient("input=8,128,28,28 weight=64,128,1,1 layout=nhwc"));
  ASSERT_FALSE(all.empty());
  for (const WgmmaCandidate& one : all) EXPECT_FALSE(one.tiling.stores_pixels);
}

// 3x3 taps: one, two, two and four of nine, in a window of 2x2.
TEST(WgmmaPhases, TilesMultiplyTheTapsOfTheirPhase) {
  std::set<std::pair<bool, bool>> seen;
  for (const char* layout : {"layout=nhwc", "layout=nchw"})
    for (const WgmmaCandidate& one : wgmma_candidates(gradient(std::string(kChannels) + layout))) {
      if (!one.tiling.stores_pixels) continue;
      const WgmmaGeometry geometry = one.geometry();
      const bool nchw = one.problem.phases.columns_innermost;
      EXPECT_EQ(geometry.tile_phases(), nchw ? 2 : 4);
      EXPECT_EQ(geometry.met_taps(), nchw ? 2 + 4 : 1 + 2 + 2 + 4);
      const bool skips = geometry.skips_zero_taps();
      EXPECT_EQ(geometry.multiplied_units() < geometry.units(), skips);
      if (!seen.emplace(nchw, skips).second) continue;
      const std::string text = convolution_text(one).text;
      const auto multiplications = static_cast<std::int64_t>(test::count(text, "multiply(sum, weights"));
      const std::int64_t taps = skips ? geometry.met_taps() : geometry.taps();
      EXPECT_EQ(multiplications, taps * one.tiling.pipeline.slices / 2) << to_string(one.plan);
      // Each consumer of sliced-K begins with a step of its own.
      const bool sliced = one.tiling.schedule == WgmmaTiling::Schedule::sliced_k;
      EXPECT_EQ(static_cast<std::int64_t>(test::count(text, sliced ? "step != own_first);" : "step != 0);")),
                skips ? geometry.tile_phases() : 1)
          << "the first multiplication of a tile's first step does not add";
    }
  EXPECT_EQ(seen.size(), 4) << "of both layouts, with and without";
}

// Rows and columns of phase 0 meet the filter's tap 1, those of phase 1 its taps 0 and 2.
TEST(WgmmaPhases, OfATileMeetTheTapsOfTheDefinition) {
  for (const char* layout : {"layout=nhwc", "layout=nchw"}) {
    const std::vector<WgmmaCandidate> all = wgmma_candidates(gradient(std::string(kChannels) + layout));
    const auto one = std::ranges::find_if(all, [](const WgmmaCandidate& each) { return each.tiling.stores_pixels; });
    ASSERT_NE(one, all.end());
    const WgmmaGeometry geometry = one->geometry();
    std::vector<int> met;
    for (std::int64_t phase = 0; phase < geometry.tile_phases(); ++phase) {
      met.push_back(0);
      for (const auto& [r, s] : {std::pair{0, 0}, {0, 1}, {1, 0}, {1, 1}})
        met.back() += geometry.meets_tap(phase, r, s) ? 1 : 0;
    }
    EXPECT_EQ(met, one->problem.phases.columns_innermost ? (std::vector{2, 4}) : (std::vector{1, 2, 2, 4}));
  }
}

TEST(WgmmaPhases, RowsOfPixelsAreWrittenByVectorsWhereTheyAreWholeOnes) {
  const auto pixels = [](const std::string& input) {
    for (const WgmmaCandidate& one : wgmma_candidates(gradient(input + " weight=64,128,3,3 layout=nchw")))
      if (one.tiling.stores_pixels) return WgmmaStore(one.geometry()).pixels_of_store();
    return 0;
  };
  EXPECT_EQ(pixels("input=8,128,28,28"), 2);
  EXPECT_EQ(pixels("input=8,128,28,27"), 1) << "rows start between two words";
}

}  // namespace
}  // namespace jitconv::codegen
