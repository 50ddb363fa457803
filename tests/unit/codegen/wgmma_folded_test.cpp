// Statements about tiles of the wgmma family whose rows are groups of output channels, one for each of neighbouring
// filter columns: what their taps and rows multiply, what a run stores, and where they are chosen.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <vector>

#include "codegen/wgmma/store.h"
#include "unit/codegen/wgmma_candidates.h"
#include "unit/codegen/wgmma_runs.h"

namespace jitconv::codegen {
namespace {

using test::some_that_fold;
using test::wgmma_candidates;
using test::WgmmaCandidate;

TEST(ColumnFold, TapsHaveEveryColumnOnceOrHalfOfItTwice) {
  for (std::int64_t columns = 1; columns <= 40; ++columns)
    for (const int folded : {1, 2, 4, 8}) {
      const ColumnFold fold{columns, folded};
      std::vector<int> times(static_cast<std::size_t>(columns));
      for (std::int64_t tap = 0; tap < fold.taps(); ++tap)
        for (std::int64_t group = 0; group < fold.groups(); ++group)
          ++times.at(static_cast<std::size_t>(fold.first_column(tap) + group));  // throws where the filter has none
      for (std::int64_t column = 0; column < columns; ++column) {
        const bool shared = column >= fold.last_column() && column < fold.last_column() + fold.shared_columns();
        EXPECT_EQ(times[static_cast<std::size_t>(column)], shared ? 2 : 1) << columns << " by " << folded;
        // The packing kernel's words for the same.
        EXPECT_EQ(shared, fold.taps() > 1 && column >= fold.last_column() && column < (fold.taps() - 1) * folded);
      }
      EXPECT_LE(fold.taps() * folded, columns + folded - 1);
    }
}

RC_GTEST_PROP(WgmmaFoldedProperty, RunsHaveTheSumsOfAllColumns, ()) {
  for (const WgmmaCandidate& one : some_that_fold()) {
    const WgmmaTiling& t = one.tiling;
    const Problem& problem = one.problem;
    const WgmmaGeometry g = one.geometry();
    const WgmmaStore store(g);
    const std::int64_t tile = *rc::gen::inRange<std::int64_t>(0, g.tiles_of_images());
    const int run = *rc::gen::inRange(0, t.runs());
    test::visit_outputs(one, test::run_of(one, tile, run), [&](std::int64_t position, std::int64_t, std::int64_t) {
      // The last group's sum for an output lies so many positions behind; its last tap's pixel is one of the run.
      RC_ASSERT(position + g.fold_reach() < t.tile.columns);
      const int last_tap = static_cast<int>(g.taps()) - 1;
      RC_ASSERT(position + g.fold_reach() + g.tap_place(last_tap) < g.run_pixels());
    });
    // The filter's last column is met, and none behind it.
    const int last_of_row = static_cast<int>(g.fold().taps()) - 1;
    RC_ASSERT(g.fold_reach() + g.tap_place(last_of_row) == problem.columns.reach());
    RC_ASSERT(store.staged_before() >= g.fold_reach() && store.staged_before() % 4 == 0);
  }
}

RC_GTEST_PROP(WgmmaFoldedProperty, AllChannelsHaveRows, ()) {
  for (const WgmmaCandidate& one : some_that_fold()) {
    const WgmmaTiling& t = one.tiling;
    const WgmmaGeometry g = one.geometry();
    const WgmmaStore store(g);
    RC_ASSERT(one.problem.k * t.tile.folded_columns <= 64 && g.tiles_k() == 1);
    RC_ASSERT(one.problem.columns.stride == 1);
    if (one.problem.output.layout() == Layout::nhwc) {
      // What a lane writes of a position is aligned, and lies in one warp's channels.
      const int vector = store.run_store_vector();
      RC_ASSERT(16 / t.tile.folded_columns % vector == 0 && one.problem.k % vector == 0);
      RC_ASSERT(vector * store.written_bytes() <= 16 && one.problem.output.type == one.problem.input.type);
    }
    RC_ASSERT(t.packs_weights() && t.split_k == 1 && t.tile.images == 0 && !store.stores_bulk());
    RC_ASSERT(store.staged_bytes() == 4);
    // Half as many columns would not have as few taps.
    const ColumnFold half{one.problem.columns.taps, t.tile.folded_columns / 2};
    RC_ASSERT(half.taps() > g.fold().taps());
  }
}

TEST(WgmmaFolded, NothingIsFoldedWhereRowsAreFullOrColumnsApart) {
  for (const char* text : {"input=2,20,26,34 weight=33,20,3,3 math=tf32", "input=2,20,26,34 weight=16,20,3,1 math=tf32",
                           "input=2,20,26,34 weight=16,20,3,3 stride=1,2 math=tf32",
                           // Sums of phases are floats.
                           "input=1,4,18,43 weight=24,4,3,5 stride=2 padding=1 operation=data_gradient dtype=bf16 "
                           "layout=nhwc"})
    for (const WgmmaCandidate& one : wgmma_candidates(parse_spec(text)))
      EXPECT_FALSE(one.tiling.folds_columns()) << text;
}

TEST(WgmmaFolded, IsChosenForFewOutputChannels) {
  const struct {
    const char* spec;
    int folded;
  } cases[] = {
      {"input=16,16,1024,1024 weight=128,16,5,3 padding=1 operation=data_gradient math=tf32", 4},
      {"input=8,32,512,512 weight=64,32,5,9 padding=2,4 dilation=2,3 operation=data_gradient math=tf32", 2},
      {"input=16,64,128,128 weight=3,64,7,7 padding=3 bias dtype=bf16 layout=nhwc", 8},
  };
  for (const auto& [spec, folded] : cases) {
    const ConvPlan plan = make_plan(parse_spec(spec), parse_target("sm_90a"));
    const auto* tiling = plan.tiling<WgmmaTiling>();
    ASSERT_NE(tiling, nullptr) << spec;
    EXPECT_EQ(tiling->tile.folded_columns, folded) << spec;
  }
  const std::string text = to_string(make_plan(parse_spec(cases[0].spec), parse_target("sm_90a")));
  EXPECT_NE(text.find("rows of a tile: 4 groups of 16 channels, for 3 neighbouring filter columns\n"),
            std::string::npos)
      << text;
}

}  // namespace
}  // namespace jitconv::codegen
