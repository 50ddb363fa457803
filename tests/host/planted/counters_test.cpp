// Counters of kernels whose requests, sectors, wavefronts and FMAs are known by arithmetic (kernels/counters.cu).
#include <gtest/gtest.h>

#include "host/planted/kernels.h"

namespace jitconv::test {
namespace {

using host::Counters;
using host::GlobalCounters;
using host::SharedCounters;

class CountedKernels : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    kernel_ = new TestKernel(
        kernel_text("counters"),
        {"coalesced",         "strided",   "shifted",   "reversed",          "broadcast",   "one_per_sector",
         "half_sectors",      "vectors",   "branch",    "half_of_the_lanes", "uneven_loop", "bank_per_lane",
         "stride_2",          "stride_32", "stride_33", "one_word",          "pairs",       "quads",
         "quads_of_one_bank", "copies",    "fmas"},
        host::Purpose::count);
  }
  static void TearDownTestSuite() {
    delete kernel_;
    kernel_ = nullptr;
  }

  static Counters count(const std::string& entry, std::uint32_t threads = 32, std::uint32_t blocks = 1) {
    Counters first;
    for (const std::uint64_t seed : {1, 2, 3}) {
      const host::Report report = kernel_->run(entry, {.blocks = blocks, .threads = threads, .shared_bytes = 8192},
                                               host::Settings{.seed = seed});
      for (const host::Finding& finding : report.findings) ADD_FAILURE() << to_string(finding);
      if (seed == 1) first = report.counters;
      EXPECT_EQ(report.counters, first) << "counts do not depend on the order of warps";
    }
    return first;
  }

 private:
  static TestKernel* kernel_;
};
TestKernel* CountedKernels::kernel_ = nullptr;

GlobalCounters global(std::uint64_t requests, std::uint64_t sectors, std::uint64_t bytes) {
  return {requests, sectors, bytes};
}
SharedCounters shared(std::uint64_t requests, std::uint64_t wavefronts, std::uint64_t ideal, std::uint64_t bytes) {
  return {requests, wavefronts, ideal, bytes};
}

TEST_F(CountedKernels, CoalescedLanesShareSectors) {
  const Counters counters = count("coalesced");
  EXPECT_EQ(counters.global_loads, global(1, 4, 128));
  EXPECT_EQ(counters.global_stores, global(1, 4, 128));
  EXPECT_EQ(counters.shared_loads, SharedCounters{});
  EXPECT_EQ(counters.fmas, 0u);
  EXPECT_DOUBLE_EQ(counters.global_loads.efficiency(), 1.0);
}

TEST_F(CountedKernels, WarpsAndBlocksAddUp) {
  EXPECT_EQ(count("coalesced", 250).global_loads, global(8, 32, 1000));
  EXPECT_EQ(count("pairs", 32, 3).shared_stores, shared(3, 6, 6, 3 * 256));
}

TEST_F(CountedKernels, EveryOtherElementHalvesEfficiency) {
  const Counters counters = count("strided");
  EXPECT_EQ(counters.global_loads, global(1, 8, 128));
  EXPECT_EQ(counters.global_stores, global(1, 8, 128));
  EXPECT_DOUBLE_EQ(counters.global_stores.efficiency(), 0.5);
}

TEST_F(CountedKernels, MisalignedStartTouchesOneSectorMore) {
  EXPECT_EQ(count("shifted").global_loads, global(1, 5, 128));
  EXPECT_EQ(count("shifted").global_stores, global(1, 5, 128));
}

TEST_F(CountedKernels, OrderOfLanesDoesNotMatter) { EXPECT_EQ(count("reversed").global_loads, global(1, 4, 128)); }

TEST_F(CountedKernels, BytesOfABroadcastCountOnce) {
  const Counters counters = count("broadcast");
  EXPECT_EQ(counters.global_loads, global(1, 1, 4));
  EXPECT_EQ(counters.global_stores, global(1, 1, 4));
  EXPECT_DOUBLE_EQ(counters.global_loads.efficiency(), 0.125);
}

TEST_F(CountedKernels, OneElementPerSector) { EXPECT_EQ(count("one_per_sector", 31).global_loads, global(1, 31, 124)); }

TEST_F(CountedKernels, HalfSectorStoresShow) {
  const Counters counters = count("half_sectors");
  EXPECT_EQ(counters.global_stores, global(2, 16, 256));
  EXPECT_DOUBLE_EQ(counters.global_stores.efficiency(), 0.5);
}

TEST_F(CountedKernels, VectorsAreOneRequest) {
  EXPECT_EQ(count("vectors").global_loads, global(1, 16, 512));
  EXPECT_EQ(count("vectors").global_stores, global(1, 16, 512));
}

TEST_F(CountedKernels, LanesThatAreOffAskForNothing) {
  EXPECT_EQ(count("half_of_the_lanes").global_loads, global(1, 2, 64));
}

TEST_F(CountedKernels, BranchesAreTwoRequestsAndComeTogetherAgain) {
  const Counters counters = count("branch");
  EXPECT_EQ(counters.global_loads, global(2, 4 + 5, 128));
  EXPECT_EQ(counters.global_stores, global(3, 4 + 4 + 4, 64 + 64 + 128));
}

TEST_F(CountedKernels, UnevenLoopsAreRequestsOfFewerAndFewerLanes) {
  const Counters counters = count("uneven_loop");
  EXPECT_EQ(counters.global_loads, global(31, 31, 31 * 4));
  EXPECT_EQ(counters.global_stores, global(1, 4, 128));
}

TEST_F(CountedKernels, OneBankPerLaneIsOneWavefront) {
  const Counters counters = count("bank_per_lane");
  EXPECT_EQ(counters.shared_stores, shared(1, 1, 1, 128));
  EXPECT_EQ(counters.shared_loads, shared(1, 1, 1, 128));
  EXPECT_EQ(counters.shared_loads.conflicts(), 0u);
}

TEST_F(CountedKernels, StridesConflictByTheirCommonFactorWith32) {
  EXPECT_EQ(count("stride_2").shared_stores, shared(1, 2, 1, 128));
  EXPECT_EQ(count("stride_2").shared_loads, shared(1, 2, 1, 128));
  EXPECT_EQ(count("stride_32").shared_stores, shared(1, 32, 1, 128));
  EXPECT_EQ(count("stride_32").shared_loads.conflicts(), 31u);
  EXPECT_EQ(count("stride_33").shared_stores, shared(1, 1, 1, 128));
}

TEST_F(CountedKernels, LanesThatWantOneWordShareIt) { EXPECT_EQ(count("one_word").shared_loads, shared(1, 1, 1, 128)); }

TEST_F(CountedKernels, WideAccessesTakeAWavefrontPerPartOfTheWarp) {
  EXPECT_EQ(count("pairs").shared_stores, shared(1, 2, 2, 256));
  EXPECT_EQ(count("quads").shared_stores, shared(1, 4, 4, 512));
  EXPECT_EQ(count("quads_of_one_bank").shared_stores, shared(1, 32, 4, 512));
}

TEST_F(CountedKernels, AsynchronousCopiesAreLoadsAndStores) {
  const Counters counters = count("copies");
  EXPECT_EQ(counters.global_loads, global(1, 12, 384));
  EXPECT_EQ(counters.shared_stores, shared(1, 4, 4, 512));
  EXPECT_EQ(counters.global_stores, GlobalCounters{});
}

TEST_F(CountedKernels, FmasCountPerThread) { EXPECT_EQ(count("fmas").fmas, 32u + 32u + 4u); }

TEST(Counters, AModuleCompiledToCheckCountsNothing) {
  TestKernel kernel(kernel_text("counters"), {"coalesced"}, host::Purpose::check);
  EXPECT_EQ(kernel.run("coalesced", {.threads = 32}, {}).counters, Counters{});
}

}  // namespace
}  // namespace jitconv::test
