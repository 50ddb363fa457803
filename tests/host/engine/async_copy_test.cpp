// Asynchronous operations: when their bytes move, what is in their place until then, and whose they are afterwards.
#include "host/async_copy.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>

namespace jitconv::host {
namespace {

class Copies : public testing::Test {
 protected:
  Copies() : clocks(64, 2), marks(256), random(1), copies(64, 2, memory.data(), marks) {
    clocks.start_block();
    copies.start_block();
    for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<float>(i + 1);
  }
  float at(std::uint32_t element) const {
    float value;
    std::memcpy(&value, memory.data() + element * 4, 4);
    return value;
  }
  Conflict copy(std::uint32_t thread, std::uint32_t element, const float* from, Landing landing,
                std::uint32_t bytes = 4) {
    Operation operation;
    operation.issuer = thread;
    operation.destination = element * 4;
    operation.source = from;
    operation.bytes = bytes;
    operation.pc = 11;
    return copies.issue(clocks.view(thread), operation, landing, random);
  }
  Conflict load(std::uint32_t thread, std::uint32_t element) {
    return marks.load(clocks.view(thread), element * 4, 4, 1);
  }

  alignas(16) std::array<char, 256> memory{};
  alignas(16) std::array<float, 16> source{};
  Clocks clocks;
  SharedMemory marks;
  Random random;
  AsyncCopies copies;
};

TEST_F(Copies, LandLateOverPoison) {
  EXPECT_FALSE(copy(3, 4, &source[0], Landing::late, 16));
  for (std::uint32_t i = 4; i < 8; ++i) EXPECT_TRUE(std::isnan(at(i)));
  copies.commit(3);
  EXPECT_TRUE(std::isnan(at(4)));
  copies.wait(clocks.view(3), 0);
  for (std::uint32_t i = 4; i < 8; ++i) EXPECT_EQ(at(i), static_cast<float>(i - 3));
  EXPECT_FALSE(copies.in_flight());
}

TEST_F(Copies, LandEarlyButAreNotThere) {
  copy(3, 4, &source[0], Landing::early);
  EXPECT_EQ(at(4), 1.0f);
  copies.commit(3);
  EXPECT_EQ(load(3, 4).hazard, Hazard::copied);
  source[0] = 100.0f;
  copies.wait(clocks.view(3), 0);
  EXPECT_EQ(at(4), 1.0f) << "landed once";
  EXPECT_FALSE(load(3, 4));
}

TEST_F(Copies, LandEitherWay) {
  int early = 0;
  for (std::uint32_t i = 0; i < 60; ++i) {
    copy(i, i, &source[i % 16], Landing::random);
    early += std::isnan(at(i)) ? 0 : 1;
  }
  EXPECT_GT(early, 10);
  EXPECT_LT(early, 50);
}

TEST_F(Copies, OfNothingAreZeros) {
  copy(3, 4, nullptr, Landing::late, 16);
  EXPECT_TRUE(std::isnan(at(4)));
  copies.commit(3);
  copies.wait(clocks.view(3), 0);
  EXPECT_EQ(at(4), 0.0f);
  EXPECT_EQ(at(7), 0.0f);
}

TEST_F(Copies, GroupsCompleteOldestFirst) {
  for (std::uint32_t group = 0; group < 4; ++group) {
    copy(3, group * 2, &source[group], Landing::late);
    copy(3, group * 2 + 1, &source[group], Landing::late);
    copies.commit(3);
  }
  copies.wait(clocks.view(3), 3);
  EXPECT_FALSE(load(3, 0));
  EXPECT_FALSE(load(3, 1));
  EXPECT_EQ(load(3, 2).hazard, Hazard::copied);
  copies.wait(clocks.view(3), 1);
  EXPECT_FALSE(load(3, 5));
  EXPECT_EQ(load(3, 6).hazard, Hazard::copied);
  copies.wait(clocks.view(3), 0);
  EXPECT_EQ(at(7), 4.0f);
}

TEST_F(Copies, EmptyGroupsCount) {
  copy(3, 0, &source[0], Landing::late);
  copies.commit(3);
  copies.commit(3);
  copies.wait(clocks.view(3), 1);
  EXPECT_FALSE(load(3, 0)) << "one of the two groups had nothing to do";
}

TEST_F(Copies, WithoutACommitNothingIsWaitedFor) {
  copy(3, 0, &source[0], Landing::late);
  copies.wait(clocks.view(3), 0);
  EXPECT_EQ(load(3, 0).hazard, Hazard::copied);
  EXPECT_TRUE(copies.in_flight());
}

TEST_F(Copies, ThreadsWaitForTheirOwn) {
  copy(3, 0, &source[0], Landing::late);
  copies.commit(3);
  copies.commit(4);
  copies.wait(clocks.view(4), 0);
  EXPECT_EQ(load(4, 0).hazard, Hazard::copied);
  copies.wait(clocks.view(3), 0);
  EXPECT_EQ(load(4, 0).hazard, Hazard::written) << "thread 3's now";
  clocks.meet_all();
  EXPECT_FALSE(load(4, 0));
}

TEST_F(Copies, AWaitBeforeTheBarrierCountsAndOneAfterItDoesNot) {
  copy(3, 0, &source[0], Landing::late);
  copies.commit(3);
  clocks.meet_all();
  copies.wait(clocks.view(3), 0);
  EXPECT_EQ(load(4, 0).hazard, Hazard::written);
}

TEST_F(Copies, SayWhatTheirWriteBreaks) {
  marks.store(clocks.view(9), 0, 4, 1);
  EXPECT_EQ(copy(3, 0, &source[0], Landing::late).hazard, Hazard::written);
  EXPECT_EQ(copy(3, 0, &source[0], Landing::late).hazard, Hazard::copied) << "two in flight to one place";
}

TEST_F(Copies, OfAnObjectAreThereForWhoWaitsForIt) {
  MeetingPoint full(66);
  Operation operation;
  operation.issuer = 0;
  operation.proxy = Proxy::async;
  operation.completion = Completion::object;
  operation.object = 1;
  operation.destination = 64;
  operation.source = source.data();
  operation.bytes = 64;
  EXPECT_FALSE(copies.issue(clocks.view(0), operation, Landing::late, random));
  EXPECT_EQ(load(7, 16).hazard, Hazard::copied);
  copies.wait(clocks.view(0), 0);
  EXPECT_EQ(load(7, 16).hazard, Hazard::copied) << "groups have nothing to do with it";
  EXPECT_EQ(copies.land_next(1, 5), 64u);
  EXPECT_FALSE(copies.flies(1));
  EXPECT_EQ(copies.land_next(1, 5), 0u);
  copies.complete(0, 6, 64, clocks.release_agent(0, full));
  EXPECT_EQ(load(7, 16).hazard, Hazard::copied) << "another object's";
  copies.complete(1, 5, 65, clocks.release_agent(1, full));
  EXPECT_EQ(load(7, 16).hazard, Hazard::copied) << "its phase is not complete";
  copies.complete(1, 6, 65, clocks.release_agent(1, full));
  EXPECT_EQ(at(31), 16.0f);
  EXPECT_EQ(load(7, 16).hazard, Hazard::written) << "has not waited";
  clocks.acquire(8, full);
  EXPECT_FALSE(load(8, 31));
  EXPECT_FALSE(copies.in_flight());
}

TEST_F(Copies, ABlockBeginsWithoutAny) {
  copy(3, 0, &source[0], Landing::late);
  copies.commit(3);
  copies.start_block();
  clocks.start_block();
  EXPECT_FALSE(copies.in_flight());
  copies.commit(3);
  copies.wait(clocks.view(3), 0);
  EXPECT_EQ(load(3, 0).hazard, Hazard::uninitialised) << "and not pending";
  EXPECT_FALSE(marks.store(clocks.view(3), 0, 4, 1));
}

}  // namespace
}  // namespace jitconv::host
