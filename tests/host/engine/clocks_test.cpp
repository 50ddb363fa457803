// Vector clocks: what each kind of meeting orders, and what it does not.
#include "host/clocks.h"

#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <vector>

#include "host/random.h"

namespace jitconv::host {
namespace {

std::vector<std::uint32_t> lanes(std::uint32_t first, std::uint32_t count) {
  std::vector<std::uint32_t> threads(count);
  std::iota(threads.begin(), threads.end(), first);
  return threads;
}

bool knows(const Clocks& clocks, std::uint32_t who, std::uint32_t of, Tick tick) {
  return clocks.view(who).after(of, tick);
}

TEST(Clocks, AThreadKnowsItselfAndNobodyElse) {
  Clocks clocks(64, 0);
  clocks.start_block();
  const Tick mark = clocks.view(3).now;
  EXPECT_TRUE(knows(clocks, 3, 3, mark));
  EXPECT_FALSE(knows(clocks, 4, 3, mark));
  EXPECT_FALSE(knows(clocks, 63, 3, mark));
}

TEST(Clocks, AFullBarrierOrdersWhatCameBeforeIt) {
  Clocks clocks(64, 0);
  clocks.start_block();
  const Tick before = clocks.view(3).now;
  clocks.meet_all();
  const Tick after = clocks.view(3).now;
  EXPECT_TRUE(knows(clocks, 40, 3, before));
  EXPECT_FALSE(knows(clocks, 40, 3, after));
}

TEST(Clocks, AMeetingOrdersItsMembersOnly) {
  Clocks clocks(64, 0);
  clocks.start_block();
  const Tick mark = clocks.view(3).now;
  clocks.meet(lanes(0, 32));
  EXPECT_TRUE(knows(clocks, 31, 3, mark));
  EXPECT_FALSE(knows(clocks, 32, 3, mark));
  EXPECT_FALSE(knows(clocks, 31, 3, clocks.view(3).now));
}

TEST(Clocks, KnowledgeIsPassedOn) {
  Clocks clocks(96, 0);
  clocks.start_block();
  const Tick mark = clocks.view(3).now;
  clocks.meet(lanes(0, 32));
  const std::array<std::uint32_t, 2> pair{31, 40};
  clocks.meet(pair);
  clocks.meet(lanes(32, 32));
  EXPECT_TRUE(knows(clocks, 63, 3, mark));
  EXPECT_FALSE(knows(clocks, 64, 3, mark));
}

TEST(Clocks, LaterAccessesOfAPeerAreNotOrdered) {
  Clocks clocks(64, 0);
  clocks.start_block();
  const std::array<std::uint32_t, 2> pair{0, 1};
  clocks.meet(pair);
  const Tick later = clocks.view(0).now;
  const std::array<std::uint32_t, 2> other{1, 2};
  clocks.meet(other);
  EXPECT_FALSE(knows(clocks, 2, 0, later));
}

TEST(Clocks, BlocksDoNotKnowEachOther) {
  Clocks clocks(64, 0);
  clocks.start_block();
  const Tick mark = clocks.view(3).now;
  clocks.meet_all();
  clocks.start_block();
  EXPECT_LT(mark, clocks.view(0).first);
  EXPECT_GT(clocks.view(0).now, clocks.view(0).first);
}

TEST(Clocks, ReleaseAndAcquireCarryOrder) {
  Clocks clocks(64, 0);
  clocks.start_block();
  MeetingPoint barrier(64);
  const Tick mark = clocks.view(5).now;
  clocks.release(5, barrier);
  const Tick after = clocks.view(5).now;
  EXPECT_FALSE(knows(clocks, 40, 5, mark)) << "not before it acquires";
  clocks.acquire(40, barrier);
  EXPECT_TRUE(knows(clocks, 40, 5, mark));
  EXPECT_FALSE(knows(clocks, 40, 5, after)) << "what was done after the arrival";
  EXPECT_FALSE(knows(clocks, 41, 5, mark));
  EXPECT_FALSE(knows(clocks, 5, 40, clocks.view(40).now)) << "waiting releases nothing";
}

TEST(Clocks, AcquireCarriesWhatTheArrivingThreadKnew) {
  Clocks clocks(64, 0);
  clocks.start_block();
  MeetingPoint barrier(64);
  const Tick mark = clocks.view(0).now;
  clocks.meet(lanes(0, 32));
  clocks.release(31, barrier);
  clocks.acquire(50, barrier);
  EXPECT_TRUE(knows(clocks, 50, 0, mark));
  MeetingPoint second(64);
  clocks.release(50, second);
  clocks.acquire(60, second);
  EXPECT_TRUE(knows(clocks, 60, 0, mark));
}

TEST(Clocks, SeveralArrivalsJoin) {
  Clocks clocks(64, 0);
  clocks.start_block();
  MeetingPoint barrier(64);
  const Tick first = clocks.view(1).now;
  clocks.release(1, barrier);
  const Tick second = clocks.view(33).now;
  clocks.release(33, barrier);
  clocks.acquire(7, barrier);
  EXPECT_TRUE(knows(clocks, 7, 1, first));
  EXPECT_TRUE(knows(clocks, 7, 33, second));
}

TEST(Clocks, AgentsAreKnownThroughTheirObjectOnly) {
  Clocks clocks(64, 2);
  clocks.start_block();
  MeetingPoint full(66), other(66);
  const Tick landed = clocks.release_agent(0, full);
  const Tick landed_other = clocks.release_agent(1, other);
  clocks.acquire(9, full);
  EXPECT_TRUE(knows(clocks, 9, 64, landed));
  EXPECT_FALSE(knows(clocks, 9, 65, landed_other));
  EXPECT_FALSE(knows(clocks, 10, 64, landed));
  const Tick next = clocks.release_agent(0, full);
  EXPECT_FALSE(knows(clocks, 9, 64, next)) << "the next phase was not waited for";
}

TEST(Clocks, AFenceCoversWhatTheThreadKnows) {
  Clocks clocks(64, 0);
  clocks.start_block();
  const Tick own = clocks.view(0).now, peer = clocks.view(1).now;
  const std::array<std::uint32_t, 2> pair{0, 1};
  clocks.meet(pair);
  EXPECT_LT(clocks.view(0).fenced[1], peer);
  clocks.fence_async_proxy(0);
  EXPECT_GE(clocks.view(0).fenced[0], own);
  EXPECT_GE(clocks.view(0).fenced[1], peer);
  EXPECT_LT(clocks.view(0).fenced[0], clocks.view(0).now) << "writes after the fence need another";
  EXPECT_LT(clocks.view(1).fenced[0], own) << "known to nobody else yet";
}

TEST(Clocks, FencesArePassedOn) {
  for (const bool full : {false, true}) {
    Clocks clocks(64, 0);
    clocks.start_block();
    const Tick mark = clocks.view(5).now;
    clocks.fence_async_proxy(5);
    if (full) {
      clocks.meet_all();
    } else {
      MeetingPoint barrier(64);
      clocks.release(5, barrier);
      clocks.acquire(40, barrier);
    }
    EXPECT_GE(clocks.view(40).fenced[5], mark);
  }
}

TEST(Clocks, AFenceAfterTheArrivalIsNotPassedOn) {
  Clocks clocks(64, 0);
  clocks.start_block();
  const Tick mark = clocks.view(5).now;
  MeetingPoint barrier(64);
  clocks.release(5, barrier);
  clocks.fence_async_proxy(5);
  clocks.acquire(40, barrier);
  EXPECT_TRUE(knows(clocks, 40, 5, mark));
  EXPECT_LT(clocks.view(40).fenced[5], mark);
}

// Against the definition: a full table of ticks, joined entry by entry, for random meetings.
TEST(Clocks, AgreeWithTheFullTable) {
  constexpr std::uint32_t kThreads = 70;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    Clocks clocks(kThreads, 0);
    std::vector<std::vector<Tick>> table(kThreads, std::vector<Tick>(kThreads, 0));
    std::vector<std::pair<std::uint32_t, Tick>> accesses;
    clocks.start_block();
    for (int step = 0; step < 200; ++step) {
      const std::uint32_t kind = random.below(20);
      for (int i = 0; i < 3; ++i) {
        const std::uint32_t t = random.below(kThreads);
        accesses.emplace_back(t, clocks.view(t).now);
      }
      std::vector<std::uint32_t> members;
      if (kind == 0) {
        members = lanes(0, kThreads);
      } else if (kind < 10) {
        members = lanes(random.below(3) * 32, 32);
        while (members.back() >= kThreads) members.pop_back();
      } else {
        for (std::uint32_t t = 0; t < kThreads; ++t)
          if (random.below(8) == 0) members.push_back(t);
      }
      std::vector<Tick> joined(kThreads, 0);
      for (const std::uint32_t t : members) {
        for (std::uint32_t u = 0; u < kThreads; ++u) joined[u] = std::max(joined[u], table[t][u]);
        joined[t] = std::max(joined[t], clocks.view(t).now);
      }
      for (const std::uint32_t t : members) table[t] = joined;
      if (kind == 0)
        clocks.meet_all();
      else
        clocks.meet(members);
      for (const auto& [thread, tick] : accesses)
        for (std::uint32_t t = 0; t < kThreads; ++t)
          ASSERT_EQ(knows(clocks, t, thread, tick), t == thread || tick <= table[t][thread])
              << "seed " << seed << " step " << step << ": " << t << " of " << thread;
      if (accesses.size() > 60) accesses.erase(accesses.begin(), accesses.begin() + 30);
    }
  }
}

// Whatever happened since the last common view, the next one is what the threads know now.
TEST(Clocks, ACommonViewIsNeverOld) {
  constexpr std::uint32_t kThreads = 8, kCommon = 4, kAgents = 2;
  Clocks clocks(kThreads, kAgents);
  clocks.start_block();
  MeetingPoint point(kThreads + kAgents);
  Random random(1);
  for (int step = 0; step < 2000; ++step) {
    const std::uint32_t kind = random.below(8), thread = random.below(kThreads), agent = random.below(kAgents);
    if (kind == 0) clocks.start_block();
    if (kind == 1) clocks.meet_all();
    if (kind == 2) clocks.meet(lanes(thread / 2, 3));
    if (kind == 3) clocks.release(thread, point);
    if (kind == 4) clocks.acquire(thread, point);
    if (kind == 5) clocks.release_agent(agent, point);
    if (kind == 6) clocks.acquire_agent(thread, agent, clocks.tick_of_agent());
    if (kind == 7) clocks.fence_async_proxy(thread);
    const View common = clocks.common_view(kCommon, kCommon);
    for (std::uint32_t column = 0; column < kThreads + kAgents; ++column) {
      Tick seen = Clocks::kPending, fenced = Clocks::kPending;
      for (std::uint32_t t = kCommon; t < 2 * kCommon; ++t) {
        const View own = clocks.view(t);
        seen = std::min(seen, column == t ? own.now : own.seen[column]);
        fenced = std::min(fenced, own.fenced[column]);
      }
      ASSERT_EQ(common.seen[column], seen) << "step " << step << ", kind " << kind;
      ASSERT_EQ(common.fenced[column], fenced) << "step " << step << ", kind " << kind;
    }
  }
}

TEST(Clocks, RestartBeginsAgain) {
  Clocks clocks(32, 0);
  clocks.start_block();
  EXPECT_FALSE(clocks.exhausted());
  const Tick first = clocks.first();
  clocks.meet_all();
  clocks.restart();
  clocks.start_block();
  EXPECT_EQ(clocks.first(), first);
}

}  // namespace
}  // namespace jitconv::host
