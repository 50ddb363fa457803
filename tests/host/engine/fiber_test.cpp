// Fibers: control passes back and forth, registers and stacks are kept, a dropped fiber starts anew.
#include "host/fiber.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

namespace jitconv::host {
namespace {

struct Counting {
  Fiber fiber;
  std::vector<int> values;
  int rounds = 3;
};

void count(void* argument) {
  auto& self = *static_cast<Counting*>(argument);
  for (int i = 0; i < self.rounds; ++i) {
    self.values.push_back(i);
    self.fiber.yield();
  }
  self.values.push_back(-1);
  self.fiber.finish();
}

TEST(Fiber, RunsUntilItYields) {
  Stacks stacks(1);
  Counting one;
  one.fiber.start(stacks.lowest(0), Stacks::kBytes, &count, &one);
  EXPECT_TRUE(one.values.empty());
  one.fiber.resume();
  EXPECT_EQ(one.values, std::vector<int>{0});
  one.fiber.resume();
  EXPECT_EQ(one.values, (std::vector<int>{0, 1}));
}

TEST(Fiber, ManyTakeTurns) {
  constexpr int kFibers = 100;
  Stacks stacks(kFibers);
  const auto fibers = std::make_unique<Counting[]>(kFibers);
  for (int i = 0; i < kFibers; ++i) fibers[i].fiber.start(stacks.lowest(i), Stacks::kBytes, &count, &fibers[i]);
  for (int round = 0; round < 4; ++round)
    for (int i = kFibers - 1; i >= 0; --i) fibers[i].fiber.resume();
  for (int i = 0; i < kFibers; ++i) EXPECT_EQ(fibers[i].values, (std::vector<int>{0, 1, 2, -1}));
}

TEST(Fiber, StartDropsWhatItWasDoing) {
  Stacks stacks(1);
  Counting one;
  for (int i = 0; i < 1000; ++i) {
    one.values.clear();
    one.fiber.start(stacks.lowest(0), Stacks::kBytes, &count, &one);
    one.fiber.resume();
    one.fiber.resume();
    ASSERT_EQ(one.values, (std::vector<int>{0, 1}));
  }
}

struct Deep {
  Fiber fiber;
  double result = 0;
};

// Keeps a value per frame across a switch, so that a switch that loses registers or stack shows.
double descend(Deep& self, int depth, double value) {
  char frame[200];
  std::memset(frame, depth, sizeof(frame));
  if (depth == 0) {
    self.fiber.yield();
    return value;
  }
  const double below = descend(self, depth - 1, std::sqrt(value + depth));
  double sum = below;
  for (const char byte : frame) sum += byte == static_cast<char>(depth) ? 0 : 1000;
  return sum + depth;
}

void deep(void* argument) {
  auto& self = *static_cast<Deep*>(argument);
  self.result = descend(self, 200, 2.0);
  self.fiber.finish();
}

TEST(Fiber, KeepsRegistersAndStack) {
  Stacks stacks(2);
  Deep first, second;
  first.fiber.start(stacks.lowest(0), Stacks::kBytes, &deep, &first);
  second.fiber.start(stacks.lowest(1), Stacks::kBytes, &deep, &second);
  first.fiber.resume();
  second.fiber.resume();
  first.fiber.resume();
  second.fiber.resume();
  EXPECT_GT(first.result, 200 * 201 / 2);
  EXPECT_LT(first.result, 200 * 201 / 2 + 10);
  EXPECT_EQ(first.result, second.result);
}

TEST(Fiber, StacksAreApartAndAligned) {
  Stacks stacks(3);
  for (int i = 0; i < 3; ++i) {
    char* low = stacks.lowest(i);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(low) % 16, 0u);
    low[0] = low[Stacks::kBytes - 1] = 1;
    if (i > 0) {
      EXPECT_GT(low, stacks.lowest(i - 1) + Stacks::kBytes);
    }
  }
}

using FiberDeathTest = testing::Test;

TEST(FiberDeathTest, AnOverflowHitsAnUnmappedPage) {
  Stacks stacks(2);
  EXPECT_DEATH(stacks.lowest(1)[-1] = 1, "");
}

}  // namespace
}  // namespace jitconv::host
