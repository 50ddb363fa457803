// Barrier objects, one by one: what completes a phase, what a completed phase tells whom, and what is refused.
#include "host/phase_barriers.h"

#include <gtest/gtest.h>

namespace jitconv::host {
namespace {

class Phases : public testing::Test {
 protected:
  Phases() : clocks(64, 2), barriers(clocks) { clocks.start_block(); }

  PhaseBarriers::Barrier& made(std::uint32_t offset, std::int64_t arrivals) {
    EXPECT_EQ(barriers.init(clocks.view(0), offset, arrivals, 11), "");
    barriers.make_visible(0);
    return *barriers.find(offset);
  }
  /// Whether `reader` knows what `writer` did at `tick`.
  bool knows(std::uint32_t reader, std::uint32_t writer, Tick tick) { return clocks.view(reader).after(writer, tick); }

  Clocks clocks;
  PhaseBarriers barriers;
};

TEST_F(Phases, CompleteWithTheLastArrival) {
  PhaseBarriers::Barrier& barrier = made(64, 2);
  EXPECT_FALSE(PhaseBarriers::passes(barrier, 0));
  EXPECT_TRUE(PhaseBarriers::passes(barrier, 1)) << "the phase before the first";
  EXPECT_EQ(barriers.arrive(barrier, 1, 0), "");
  EXPECT_FALSE(PhaseBarriers::passes(barrier, 0));
  EXPECT_EQ(barriers.arrive(barrier, 2, 0), "");
  EXPECT_TRUE(PhaseBarriers::passes(barrier, 0));
  EXPECT_FALSE(PhaseBarriers::passes(barrier, 1));
  EXPECT_EQ(barrier.phase, 1u);
  barriers.arrive(barrier, 1, 0);
  barriers.arrive(barrier, 1, 0);
  EXPECT_TRUE(PhaseBarriers::passes(barrier, 1));
}

TEST_F(Phases, CompleteWithTheLastByte) {
  PhaseBarriers::Barrier& barrier = made(64, 1);
  barriers.arrive(barrier, 0, 48);
  EXPECT_EQ(barriers.land(barrier, 32), "");
  EXPECT_EQ(barrier.phase, 0u);
  EXPECT_EQ(PhaseBarriers::describe(barrier),
            "the barrier at shared + 0x40, whose phase 0 lacks 0 of 1 arrivals and 16 announced bytes that no copy "
            "brings");
  EXPECT_EQ(barriers.land(barrier, 16), "");
  EXPECT_EQ(barrier.phase, 1u);
}

TEST_F(Phases, BytesMayComeBeforeTheirAnnouncement) {
  PhaseBarriers::Barrier& barrier = made(64, 1);
  barriers.land(barrier, 32);
  EXPECT_EQ(barrier.phase, 0u);
  EXPECT_NE(PhaseBarriers::describe(barrier).find("got 32 bytes that nobody announced"), std::string::npos);
  barriers.arrive(barrier, 0, 32);
  EXPECT_EQ(barrier.phase, 1u);
}

TEST_F(Phases, TellWhatWasDoneBeforeArrivingAndNotAfter) {
  PhaseBarriers::Barrier& barrier = made(64, 2);
  const Tick before = clocks.view(1).now;
  barriers.arrive(barrier, 1, 0);
  const Tick after = clocks.view(1).now;
  EXPECT_GT(after, before);
  barriers.arrive(barrier, 2, 0);
  EXPECT_FALSE(knows(40, 1, before));
  clocks.acquire(40, barrier.complete);
  EXPECT_TRUE(knows(40, 1, before));
  EXPECT_FALSE(knows(40, 1, after));
}

TEST_F(Phases, TellNothingOfThoseWhoArriveInTheNext) {
  PhaseBarriers::Barrier& barrier = made(64, 2);
  barriers.arrive(barrier, 1, 0);
  barriers.arrive(barrier, 2, 0);
  const Tick early = clocks.view(3).now;
  barriers.arrive(barrier, 3, 0);
  clocks.acquire(40, barrier.complete);
  EXPECT_FALSE(knows(40, 3, early)) << "phase 1 is not complete";
  barriers.arrive(barrier, 4, 0);
  clocks.acquire(40, barrier.complete);
  EXPECT_TRUE(knows(40, 3, early));
}

TEST_F(Phases, RefuseWhatABarrierCannotTake) {
  EXPECT_NE(barriers.init(clocks.view(0), 64, 0, 1), "");
  EXPECT_NE(barriers.init(clocks.view(0), 64, 1 << 20, 1), "");
  PhaseBarriers::Barrier& barrier = made(64, 1);
  EXPECT_EQ(barriers.init(clocks.view(0), 64, 1, 1), "this is a barrier already");
  EXPECT_NE(barriers.arrive(barrier, 0, -16), "");
  EXPECT_NE(barriers.arrive(barrier, 0, 1 << 20), "");
  EXPECT_EQ(barriers.arrive(barrier, 0, 16), "");
  EXPECT_NE(barriers.arrive(barrier, 1, 0).find("takes 1 arrivals, which have all come: it waits for 16 more bytes"),
            std::string::npos);
  EXPECT_NE(barriers.land(barrier, 2 << 20), "");
}

TEST_F(Phases, AreForThoseWhoKnowOfTheInitialisation) {
  ASSERT_EQ(barriers.init(clocks.view(0), 64, 1, 1), "");
  const PhaseBarriers::Barrier& barrier = *barriers.find(64);
  EXPECT_NE(barriers.check_use(barrier, clocks.view(0)).find("without a fence"), std::string::npos);
  barriers.make_visible(1);
  EXPECT_NE(barriers.check_use(barrier, clocks.view(0)), "") << "another thread's fence";
  barriers.make_visible(0);
  EXPECT_EQ(barriers.check_use(barrier, clocks.view(0)), "");
  EXPECT_NE(barriers.check_use(barrier, clocks.view(1)).find("nothing orders the two"), std::string::npos);
  clocks.meet_all();
  EXPECT_EQ(barriers.check_use(barrier, clocks.view(1)), "");
}

TEST_F(Phases, AreFoundByTheirBytesUntilTheBlockEnds) {
  made(64, 1);
  EXPECT_NE(barriers.find(60, 5), nullptr);
  EXPECT_NE(barriers.find(71, 1), nullptr);
  EXPECT_EQ(barriers.find(60, 4), nullptr);
  EXPECT_EQ(barriers.find(72, 8), nullptr);
  for (std::uint32_t i = 1; i < PhaseBarriers::kMost; ++i) made(64 + 8 * i, 1);
  EXPECT_NE(barriers.init(clocks.view(0), 8, 1, 1).find("has 256 barriers already"), std::string::npos);
  barriers.start_block();
  EXPECT_EQ(barriers.find(64), nullptr);
}

}  // namespace
}  // namespace jitconv::host
