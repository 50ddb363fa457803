// What the consumer warpgroups share: which of them multiplies a step of a tile, which stage it finds it in, and
// where sums are added. Restates the loops of templates/wgmma/kernel.cu.in, pingpong.cu.in and sliced_k.cu.in.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "codegen/source.h"
#include "codegen/wgmma/memory.h"
#include "codegen/wgmma/store.h"
#include "unit/codegen/wgmma_candidates.h"

namespace jitconv::codegen {
namespace {

using test::WgmmaCandidate;
using Schedule = WgmmaTiling::Schedule;

/// A step as a warpgroup meets it: its stage and the parity of the phase that it waits for.
struct Met {
  int tile;
  std::int64_t step, stage;
  int parity;
};

/// Steps of a block's tile, if blocks take splits by turns; `steps` has one number for each split.
std::int64_t steps_of(int tile, const std::vector<std::int64_t>& steps) {
  return steps[static_cast<std::size_t>(tile) % steps.size()];
}

/// A consumer warpgroup of a block that has `tiles` tiles, of so many steps each.
std::vector<Met> steps_of_consumer(const WgmmaTiling& t, int consumer, int tiles,
                                   const std::vector<std::int64_t>& steps) {
  std::vector<Met> met;
  std::int64_t stage = 0;
  int parity = 0;
  const auto advance = [&](std::int64_t by) {
    parity ^= static_cast<int>((stage + by) / t.pipeline.stages % 2);
    stage = (stage + by) % t.pipeline.stages;
  };
  if (t.schedule == Schedule::pingpong && consumer == 1) advance(steps_of(0, steps));
  if (t.schedule == Schedule::sliced_k && consumer == 1) advance(1);
  std::int64_t first_turn = t.schedule == Schedule::sliced_k ? consumer : 0;
  const std::int64_t own = t.schedule == Schedule::sliced_k ? 2 : 1;
  for (int tile = t.schedule == Schedule::pingpong ? consumer : 0; tile < tiles;
       tile += t.schedule == Schedule::pingpong ? 2 : 1) {
    for (std::int64_t step = first_turn; step < steps_of(tile, steps); step += own) {
      met.push_back({tile, step, stage, parity});
      advance(own);
    }
    if (t.schedule == Schedule::pingpong) advance(steps_of(tile, steps));
    if (t.schedule == Schedule::sliced_k) first_turn = (first_turn + steps_of(tile, steps)) % 2;
  }
  return met;
}

/// Steps of a split; the last may have fewer.
std::vector<std::int64_t> steps_of_splits(const WgmmaGeometry& g) {
  const int splits = g.tiling().split_k;
  std::vector<std::int64_t> steps(static_cast<std::size_t>(splits), g.steps_of_split());
  steps.back() = g.steps() - (splits - 1) * g.steps_of_split();
  return steps;
}

// The producer warps fill stages in the order of tiles and steps.
RC_GTEST_PROP(WgmmaShareProperty, WarpgroupsMultiplyEachStepWhereItIsLoaded, ()) {
  for (const WgmmaCandidate& one : test::some_wgmma_candidates()) {
    const WgmmaTiling& t = one.tiling;
    const WgmmaGeometry g = one.geometry();
    const std::vector<std::int64_t> steps = steps_of_splits(g);
    if (g.steps() > 1000) continue;
    constexpr int kTiles = 5;
    std::map<std::pair<int, std::int64_t>, std::vector<int>> multiplied;
    std::map<std::int64_t, std::set<int>> users;  // of a stage
    for (const int consumer : {0, 1}) {
      const std::vector<Met> met = steps_of_consumer(t, consumer, kTiles, steps);
      for (std::size_t i = 0; i < met.size(); ++i) {
        std::int64_t loaded = met[i].step;  // before it, by the block
        for (int tile = 0; tile < met[i].tile; ++tile) loaded += steps_of(tile, steps);
        RC_ASSERT(met[i].stage == loaded % t.pipeline.stages);
        RC_ASSERT(met[i].parity == loaded / t.pipeline.stages % 2);
        // It gives a stage back when it has the next, which must be another.
        if (i > 0) RC_ASSERT(met[i].stage != met[i - 1].stage || met[i].tile != met[i - 1].tile);
        multiplied[{met[i].tile, met[i].step}].push_back(consumer);
        users[met[i].stage].insert(consumer);
      }
    }
    for (int tile = 0; tile < kTiles; ++tile) {
      std::set<int> of_tile;
      for (std::int64_t step = 0; step < steps_of(tile, steps); ++step) {
        const std::vector<int>& by = multiplied[{tile, step}];
        RC_ASSERT(by.size() == (t.schedule == Schedule::cooperative ? 2u : 1u));
        of_tile.insert(by.begin(), by.end());
      }
      // Sums that are added must have begun.
      RC_ASSERT(of_tile.size() == (t.schedule == Schedule::pingpong ? 1u : 2u));
    }
    // Phases of a stage that only one warpgroup waits for complete in the order in which it releases them.
    if (t.schedule == Schedule::sliced_k)
      for (const auto& [stage, by] : users) RC_ASSERT(by.size() == 1u);
    if (t.schedule == Schedule::pingpong) RC_ASSERT(t.split_k == 1);  // all of its tiles have as many steps
  }
}

RC_GTEST_PROP(WgmmaShareProperty, SumsFitWhereOutputsAreStaged, ()) {
  for (const WgmmaCandidate& one : test::some_wgmma_candidates()) {
    const WgmmaTiling& t = one.tiling;
    const WgmmaGeometry g = one.geometry();
    const WgmmaStore store(g);
    RC_ASSERT(t.tile.channels * t.runs() == 64 * t.tile_consumers());
    if (t.schedule != Schedule::sliced_k) continue;
    RC_ASSERT(one.problem.output.layout() == Layout::nchw && store.staged_bytes() == 4);
    // A lane leaves half of its sums, a warp as many floats as it stages channels.
    const std::int64_t left = kWarpSize * t.tile.columns / 4, warp = 8 * store.staging_pitch();
    RC_ASSERT(left <= warp && warp % 2 == 0);
    RC_ASSERT(WgmmaMemory(g).staging_first_byte() % 8 == 0);
  }
}

std::string source_with(Schedule schedule, const char* spec) {
  for (const WgmmaCandidate& one : test::wgmma_candidates(parse_spec(spec)))
    if (one.tiling.schedule == schedule && one.tiling.split_k == 1) return generate(one.plan).text;
  return {};
}

// The order of what a warpgroup asks and says; who has not waited for its turn must not be asked for its sums.
TEST(WgmmaShare, EachWaySaysWhatItWaitsFor) {
  constexpr const char* kSpec = "input=4,64,40,64 weight=64,64,3,3 padding=1 math=tf32";
  const std::string tile = source_with(Schedule::cooperative, kSpec), turns = source_with(Schedule::pingpong, kSpec),
                    steps = source_with(Schedule::sliced_k, kSpec);
  for (const char* name : {"multiplied + ", "Barrier* const pairs"})
    EXPECT_EQ(tile.find(name), std::string::npos) << name;
  const auto at = [](const std::string& text, const char* what) {
    const std::size_t place = text.rfind(what);
    EXPECT_NE(place, std::string::npos) << what;
    return place;
  };
  // All four warps must have waited for their turn before the other warpgroup's next begins.
  EXPECT_NE(turns.find("barrier_init(multiplied + i, kWarpgroupWarps);"), std::string::npos);
  EXPECT_LT(at(turns, "barrier_wait(multiplied"), at(turns, "multiply_begin();"));
  EXPECT_LT(at(turns, "multiply_commit();"), at(turns, "if (lane == 0) barrier_arrive(multiplied + consumer);"));
  EXPECT_LT(at(turns, "barrier_arrive(multiplied"), at(turns, "multiply_wait<0>();"));
  // Before it releases its first stage, a warpgroup knows that the other's last was released.
  const std::size_t in_order = at(turns, "barrier_wait(empty + (stage + kStages - 1) % kStages,");
  EXPECT_LT(at(turns, "if (releases_stage && step == 0 && number != static_cast<int>(blockIdx.x))"), in_order);
  EXPECT_LT(in_order, at(turns, "previous_stage = stage;"));
  EXPECT_LT(at(steps, "multiply_wait<0>();"), at(steps, "sent[i * 32] ="));
  EXPECT_LT(at(steps, "sent[i * 32] ="), at(steps, "+= received[i * 32].x"));
  EXPECT_LT(at(steps, "+= received[i * 32].x"), at(steps, "  // the other's"));
}

}  // namespace
}  // namespace jitconv::codegen
