// Buffers: which addresses are whose, and races between threads and blocks in those that may be written.
#include "host/global_memory.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "host/engine.h"

namespace jitconv::host {
namespace {

class Buffers : public testing::Test {
 protected:
  Buffers()
      : memory(std::vector<Buffer>{{"x", data.data(), 256, false},
                                   {"y", data.data() + 128, 256, true},
                                   {"in_place", data.data() + 128, 256, false}}),
        clocks(64, 0) {
    clocks.start_block();
  }
  std::uintptr_t x(std::size_t byte) const { return reinterpret_cast<std::uintptr_t>(data.data()) + byte; }
  std::uintptr_t y(std::size_t byte) const { return x(512 + byte); }
  Conflict load(std::uint32_t thread, std::size_t byte, std::uint32_t bytes = 4, std::uint32_t pc = 1) {
    return memory.load(*memory.find(y(byte), bytes), clocks.view(thread), y(byte), bytes, pc);
  }
  Conflict store(std::uint32_t thread, std::size_t byte, std::uint32_t bytes = 4, std::uint32_t pc = 2) {
    return memory.store(*memory.find(y(byte), bytes), clocks.view(thread), y(byte), bytes, pc);
  }

  alignas(64) std::array<float, 256> data{};
  GlobalMemory memory;
  Clocks clocks;
};

TEST_F(Buffers, EveryByteOfAnAccessMustLieInOne) {
  ASSERT_NE(memory.find(x(0), 16), nullptr);
  EXPECT_EQ(memory.find(x(0), 16)->name(), "x");
  EXPECT_FALSE(memory.find(x(0), 16)->writable());
  EXPECT_NE(memory.find(x(252), 4), nullptr);
  EXPECT_EQ(memory.find(x(252), 8), nullptr);
  EXPECT_EQ(memory.find(x(256), 1), nullptr);
  EXPECT_EQ(memory.find(x(0) - 1, 1), nullptr);
  EXPECT_EQ(memory.find(x(0) - 1, 4), nullptr);
  EXPECT_EQ(memory.find(0, 4), nullptr);
  EXPECT_EQ(memory.find(~std::uintptr_t{0}, 16), nullptr);
}

TEST_F(Buffers, AWritableOneComesBeforeAnAliasOfIt) {
  EXPECT_EQ(memory.find(y(0), 4)->name(), "y");
  EXPECT_TRUE(memory.find(y(0), 4)->writable());
}

TEST_F(Buffers, TheNearestNamesAWrongAddress) {
  EXPECT_EQ(memory.nearest(x(260))->name(), "x");
  EXPECT_EQ(memory.nearest(y(0) - 4)->name(), "y");
  EXPECT_EQ(memory.nearest(0)->name(), "x");
  EXPECT_EQ(GlobalMemory({}).nearest(100), nullptr);
}

TEST_F(Buffers, OneWriterPerElementIsClean) {
  for (std::uint32_t t = 0; t < 64; ++t) EXPECT_FALSE(store(t, t * 4));
  for (std::uint32_t t = 0; t < 64; ++t) EXPECT_FALSE(store(t, t * 4)) << "the same thread again";
}

TEST_F(Buffers, TwoWritersOfABlockAreARaceUnlessABarrierOrdersThem) {
  store(5, 8, 4, 50);
  const Conflict conflict = store(6, 8);
  EXPECT_EQ(conflict.hazard, Hazard::written);
  EXPECT_EQ(conflict.thread, 5);
  EXPECT_EQ(conflict.pc, 50u);
  EXPECT_FALSE(conflict.other_block);
  clocks.meet_all();
  EXPECT_FALSE(store(7, 8));
}

TEST_F(Buffers, NeighboursOfTwoBytesDoNotDisturb) {
  store(5, 8, 2);
  EXPECT_FALSE(store(6, 10, 2));
  EXPECT_EQ(store(6, 8, 2).hazard, Hazard::written);
}

TEST_F(Buffers, PartOfAVectorIsEnough) {
  store(5, 24, 4);
  const Conflict conflict = store(6, 16, 16);
  EXPECT_EQ(conflict.hazard, Hazard::written);
  EXPECT_EQ(conflict.offset, 8u);
}

TEST_F(Buffers, BlocksAreNeverOrdered) {
  store(5, 8);
  const Tick of_the_first = clocks.view(5).now;
  clocks.meet_all();
  clocks.start_block();
  const Conflict conflict = store(5, 8);
  EXPECT_EQ(conflict.hazard, Hazard::written);
  EXPECT_TRUE(conflict.other_block) << "the same thread number, of another block";
  EXPECT_EQ(conflict.tick, of_the_first);
}

TEST_F(Buffers, ReadingWhatAnotherBlockWroteIsARace) {
  store(5, 8);
  clocks.start_block();
  EXPECT_EQ(load(5, 8).hazard, Hazard::written);
  EXPECT_FALSE(load(5, 12));
}

TEST_F(Buffers, WritingWhatAnotherBlockReadIsARace) {
  load(5, 8, 4, 70);
  clocks.start_block();
  const Conflict conflict = store(5, 8);
  EXPECT_EQ(conflict.hazard, Hazard::read);
  EXPECT_TRUE(conflict.other_block);
  EXPECT_EQ(conflict.pc, 70u);
}

// A residual added in place: the owner reads and writes, a stranger who only reads must be seen before or after.
TEST_F(Buffers, AStrangersReadIsNotForgottenForTheOwners) {
  for (const bool stranger_first : {false, true}) {
    clocks.meet_all();
    load(stranger_first ? 9 : 5, 8);
    load(stranger_first ? 5 : 9, 8);
    const Conflict conflict = store(5, 8);
    EXPECT_EQ(conflict.hazard, Hazard::read);
    EXPECT_EQ(conflict.thread, 9);
  }
}

TEST_F(Buffers, InPlaceByTheOwnerIsClean) {
  for (std::uint32_t t = 0; t < 64; ++t) {
    EXPECT_FALSE(load(t, t * 4));
    EXPECT_FALSE(store(t, t * 4));
  }
}

TEST_F(Buffers, ClearForgets) {
  store(5, 8);
  load(5, 8);
  memory.clear();
  EXPECT_FALSE(store(6, 8));
}

}  // namespace
}  // namespace jitconv::host
