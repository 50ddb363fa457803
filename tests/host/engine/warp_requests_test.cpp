// Requests, sectors and wavefronts by the hardware's rules, and how lanes' accesses become requests.
#include "host/warp_requests.h"

#include <gtest/gtest.h>

#include <functional>

namespace jitconv::host {
namespace {

using Addresses = std::array<std::uintptr_t, 32>;

Addresses lanes(const std::function<std::uintptr_t(unsigned)>& address) {
  Addresses all{};
  for (unsigned lane = 0; lane < 32; ++lane) all[lane] = address(lane);
  return all;
}

GlobalCounters global(const Addresses& address, unsigned bytes, std::uint32_t mask = ~0u) {
  GlobalCounters counters;
  count_global(counters, mask, address, bytes);
  return counters;
}

SharedCounters shared(const Addresses& address, unsigned bytes, std::uint32_t mask = ~0u) {
  SharedCounters counters;
  count_shared(counters, mask, address, bytes);
  return counters;
}

TEST(GlobalRequests, CountDistinctSectorsAndBytes) {
  constexpr std::uintptr_t kBase = 1 << 20;
  EXPECT_EQ(global(lanes([](unsigned l) { return kBase + 4 * l; }), 4), (GlobalCounters{1, 4, 128}));
  EXPECT_EQ(global(lanes([](unsigned l) { return kBase + 2 * l; }), 2), (GlobalCounters{1, 2, 64}));
  EXPECT_EQ(global(lanes([](unsigned l) { return kBase + 16 * l; }), 16), (GlobalCounters{1, 16, 512}));
  EXPECT_EQ(global(lanes([](unsigned l) { return kBase + 4 + 4 * l; }), 4), (GlobalCounters{1, 5, 128}));
  EXPECT_EQ(global(lanes([](unsigned l) { return kBase + 32 * l; }), 4), (GlobalCounters{1, 32, 128}));
  EXPECT_EQ(global(lanes([](unsigned) { return kBase + 12; }), 4), (GlobalCounters{1, 1, 4}));
  EXPECT_EQ(global(lanes([](unsigned l) { return kBase + l % 2 * 4096; }), 4), (GlobalCounters{1, 2, 8}));
  EXPECT_EQ(global(lanes([](unsigned l) { return kBase + 4 * l; }), 4, 1u << 9), (GlobalCounters{1, 1, 4}));
  EXPECT_EQ(global(lanes([](unsigned l) { return kBase + 28 + 4 * (31 - l); }), 4, 3), (GlobalCounters{1, 1, 8}));
  // Lanes that overlap in part.
  EXPECT_EQ(global(lanes([](unsigned l) { return kBase + 8 * l; }), 16), (GlobalCounters{1, 9, 264}));
}

TEST(SharedRequests, CountTheFullestBankOfEachPart) {
  EXPECT_EQ(shared(lanes([](unsigned l) { return 4 * l; }), 4), (SharedCounters{1, 1, 1, 128}));
  EXPECT_EQ(shared(lanes([](unsigned l) { return 4 * 7 * l; }), 4), (SharedCounters{1, 1, 1, 128}));
  EXPECT_EQ(shared(lanes([](unsigned l) { return 4 * 36 * l; }), 4), (SharedCounters{1, 4, 1, 128}));
  EXPECT_EQ(shared(lanes([](unsigned l) { return 128 * l; }), 4), (SharedCounters{1, 32, 1, 128}));
  EXPECT_EQ(shared(lanes([](unsigned) { return 64; }), 4), (SharedCounters{1, 1, 1, 128}));
  EXPECT_EQ(shared(lanes([](unsigned l) { return l % 2 * 128; }), 4), (SharedCounters{1, 2, 1, 128}));
  EXPECT_EQ(shared(lanes([](unsigned l) { return 2 * l; }), 2), (SharedCounters{1, 1, 1, 64})) << "halves of a word";
}

TEST(SharedRequests, WideAccessesGoInParts) {
  EXPECT_EQ(shared(lanes([](unsigned l) { return 8 * l; }), 8), (SharedCounters{1, 2, 2, 256}));
  EXPECT_EQ(shared(lanes([](unsigned l) { return 16 * l; }), 16), (SharedCounters{1, 4, 4, 512}));
  EXPECT_EQ(shared(lanes([](unsigned) { return 16; }), 16), (SharedCounters{1, 4, 4, 512}));
  EXPECT_EQ(shared(lanes([](unsigned l) { return 128 * l; }), 16), (SharedCounters{1, 32, 4, 512}));
  EXPECT_EQ(shared(lanes([](unsigned l) { return 128 * l; }), 16, 0x000000ff), (SharedCounters{1, 8, 1, 128}))
      << "quarters without lanes take nothing";
  EXPECT_EQ(shared(lanes([](unsigned l) { return 144 * l; }), 16), (SharedCounters{1, 4, 4, 512}))
      << "pitch of 36 words";
}

TEST(WarpRequests, LanesOfOneInstructionAreOneRequest) {
  WarpRequests requests;
  Counters counters;
  const char code[4] = {};
  for (unsigned lane = 0; lane < 32; ++lane) {
    requests.begin_lane();
    requests.add(RequestKind::global_load, lane, 4096 + 4 * lane, 4, &code[0]);
    requests.add(RequestKind::shared_store, lane, 4 * lane, 4, &code[1]);
  }
  EXPECT_EQ(counters, Counters{}) << "not before the lanes leave the block";
  requests.flush(counters);
  EXPECT_EQ(counters.global_loads, (GlobalCounters{1, 4, 128}));
  EXPECT_EQ(counters.shared_stores, (SharedCounters{1, 1, 1, 128}));
  requests.flush(counters);
  EXPECT_EQ(counters.global_loads.requests, 1u) << "counted once";
}

TEST(WarpRequests, AnInstructionThatALaneExecutesTwiceIsTwo) {
  WarpRequests requests;
  Counters counters;
  const char code[4] = {};
  for (unsigned lane = 0; lane < 32; ++lane) {
    requests.begin_lane();
    for (unsigned i = 0; i < 3; ++i) requests.add(RequestKind::global_load, lane, 4096 + 128 * i + 4 * lane, 4, code);
  }
  requests.flush(counters);
  EXPECT_EQ(counters.global_loads, (GlobalCounters{3, 12, 384}));
}

TEST(WarpRequests, LanesMayLeaveInstructionsOut) {
  WarpRequests requests;
  Counters counters;
  const char code[4] = {};
  for (unsigned lane = 0; lane < 4; ++lane) {
    requests.begin_lane();
    if (lane != 0) requests.add(RequestKind::global_load, lane, 4096 + 4 * lane, 4, &code[0]);
    if (lane != 1) requests.add(RequestKind::global_load, lane, 8192 + 4 * lane, 4, &code[1]);
    if (lane != 2) requests.add(RequestKind::global_load, lane, 16384 + 4 * lane, 4, &code[2]);
  }
  requests.flush(counters);
  EXPECT_EQ(counters.global_loads, (GlobalCounters{3, 3, 36}));
}

TEST(WarpRequests, LongCopiesAreSeveralInstructions) {
  WarpRequests requests;
  Counters counters;
  const char code[4] = {};
  requests.begin_lane();
  requests.add(RequestKind::global_load, 0, 4096, 40, code);
  requests.flush(counters);
  EXPECT_EQ(counters.global_loads, (GlobalCounters{3, 3, 40}));
}

}  // namespace
}  // namespace jitconv::host
