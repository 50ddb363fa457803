// Bulk copies to global memory: when their bytes move, whose wait covers which, and what is said of a source that
// changed.
#include "host/bulk_stores.h"

#include <gtest/gtest.h>

#include <array>
#include <numeric>

namespace jitconv::host {
namespace {

class Stores : public testing::Test {
 protected:
  Stores() : stores(64) {
    std::iota(source.begin(), source.end(), '\1');
    stores.start_block();
  }
  void store(std::uint32_t thread, std::uint32_t first, std::uint32_t bytes, bool early) {
    stores.issue({thread, source.data() + first, destination.data() + first, bytes, nullptr}, early);
  }
  bool arrived(std::uint32_t first, std::uint32_t bytes) const {
    return std::equal(source.begin() + first, source.begin() + first + bytes, destination.begin() + first);
  }

  alignas(16) std::array<char, 64> source{}, destination{};
  BulkStores stores;
};

TEST_F(Stores, LateOnesMoveWhenTheirIssuerWaits) {
  store(3, 16, 32, false);
  stores.commit(3);
  stores.commit(5);
  EXPECT_TRUE(stores.wait(5, 0).empty());
  EXPECT_EQ(destination[16], 0);
  ASSERT_NE(stores.unfinished(), nullptr);
  EXPECT_EQ(stores.unfinished()->issuer, 3u);
  const auto finished = stores.wait(3, 0);
  ASSERT_EQ(finished.size(), 1u);
  EXPECT_EQ(finished[0].store.source, source.data() + 16);
  EXPECT_FALSE(finished[0].change);
  EXPECT_TRUE(arrived(16, 32));
  EXPECT_EQ(destination[15], 0);
  EXPECT_EQ(destination[48], 0);
  EXPECT_EQ(stores.unfinished(), nullptr);
}

TEST_F(Stores, BoxesMoveIntoTheirTensors) {
  // Rows of 12 elements, which end inside a piece of 16 bytes; of a piece all is written.
  const codegen::TensorMapShape map{
      .rank = 2, .element_bytes = 2, .extents = {12, 2}, .strides = {1, 16}, .box = {8, 4}};
  for (const bool early : {false, true}) {
    destination.fill(0);
    stores.issue({0, source.data(), destination.data(), 64, nullptr, &map, {.first = {8, -1}}}, early);
    stores.commit(0);
    EXPECT_EQ(destination[16], early ? source[16] : 0);
    EXPECT_EQ(stores.wait(0, 0).size(), 1u);
    for (std::size_t i = 0; i < 64; ++i) {
      const std::size_t row = i / 32, byte = i % 32;
      ASSERT_EQ(destination[i], byte >= 16 ? source[(row + 1) * 16 + byte - 16] : 0) << i;
    }
  }
}

TEST_F(Stores, EarlyOnesMoveAtOnceAndAreStillUnfinished) {
  store(0, 0, 16, true);
  EXPECT_TRUE(arrived(0, 16));
  EXPECT_NE(stores.unfinished(), nullptr);
}

TEST_F(Stores, WhatIsNotCommittedIsInNoGroup) {
  store(0, 0, 16, false);
  EXPECT_TRUE(stores.wait(0, 0).empty());
  EXPECT_FALSE(arrived(0, 16));
  stores.commit(0);
  EXPECT_EQ(stores.wait(0, 0).size(), 1u);
  EXPECT_TRUE(arrived(0, 16));
}

TEST_F(Stores, TheNewestGroupsMayStayInFlight) {
  store(0, 0, 16, false);
  stores.commit(0);
  store(0, 16, 16, false);
  stores.commit(0);
  EXPECT_EQ(stores.wait(0, 1).size(), 1u);
  EXPECT_TRUE(arrived(0, 16));
  EXPECT_FALSE(arrived(16, 16));
}

TEST_F(Stores, AChangedSourceIsSaidOnce) {
  for (const bool early : {false, true}) {
    stores.start_block();
    store(0, 0, 16, early);
    store(0, 16, 32, early);
    stores.commit(0);
    source[21] = 99;
    const auto finished = stores.wait(0, 0);
    source[21] = 22;
    ASSERT_EQ(finished.size(), 2u);
    EXPECT_FALSE(finished[0].change);
    EXPECT_EQ(finished[1].store.source, source.data() + 16);
    EXPECT_EQ(finished[1].change, 5u);
    EXPECT_TRUE(stores.wait(0, 0).empty());
  }
}

TEST_F(Stores, ABlockStartsWithNone) {
  store(0, 0, 16, false);
  stores.commit(0);
  stores.start_block();
  EXPECT_EQ(stores.unfinished(), nullptr);
  EXPECT_TRUE(stores.wait(0, 0).empty());
  store(0, 0, 16, false);
  EXPECT_TRUE(stores.wait(0, 0).empty());  // the group that was closed is forgotten, too
  EXPECT_FALSE(arrived(0, 16));
}

}  // namespace
}  // namespace jitconv::host
