// The formula of FMA kernels, and the tables of the cost model, with the figures of a made-up table and target, in
// which every part of the formula can be told from the others. Behind them, choices that measurements showed to be
// right.
#include "codegen/cost.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <string>

#include "codegen/cost_terms.h"
#include "codegen/costs/costs.h"
#include "codegen/costs/entries.h"
#include "codegen/wgmma/geometry.h"

namespace jitconv::codegen {
namespace {

/// A cycle is a nanosecond, memory moves a byte in one.
constexpr FmaCosts kCosts = {.picoseconds_per_cycle = 1000,
                             .fma_issue_percent = 200,
                             .unhidden_percent = 50,
                             .no_warps_percent = 100,
                             .no_block_percent = 30,
                             .unhidden_memory_permille = 100,
                             .dram_bytes_per_microsecond = 1000,
                             .pass_launch = 7};

Target ten_sms() {
  Target target = parse_target("sm_90a");
  target.sm_count = 10;
  return target;
}

/// A block of four warps that fits an SM once, and issues 400 cycles.
BlockWork block() {
  BlockWork work;
  work.blocks = 10;
  work.threads = 128;
  work.warps = 4;
  work.fma_per_warp = 100;
  work.other_per_warp = 200;
  work.shared_bytes = ten_sms().shared_bytes_per_sm - 1024;
  work.registers = 32;
  work.wanted_warps = 4;
  return work;
}

TEST(Overlapped, IsTheLongerPartAndWhatItDoesNotHideOfTheOther) {
  EXPECT_EQ(overlapped(3000, 1000, 0), 3000) << "the roofline";
  EXPECT_EQ(overlapped(3000, 1000, 1000), 4000) << "nothing overlaps";
  EXPECT_EQ(overlapped(3000, 1000, 125), 3125);
  EXPECT_EQ(overlapped(1000, 3000, 125), 3125) << "whichever is the longer one";
  EXPECT_EQ(overlapped(3000, 7, 125), 3000) << "fractions are left out";
  EXPECT_EQ(overlapped(0, 0, 125), 0);
}

std::int64_t cycles(const BlockWork& work) { return price(work, ten_sms(), kCosts) / 1000; }

TEST(CostFormula, CountsIssueSlotsOfFourSchedulers) { EXPECT_EQ(cycles(block()), 2 * 100 + 200); }

TEST(CostFormula, SharedMemoryHidesPartOfIssue) {
  BlockWork work = block();
  work.shared_per_warp = 250;  // 1000 cycles
  EXPECT_EQ(cycles(work), 1000 + 400 / 2);
  work.shared_per_warp = 50;  // 200 cycles
  EXPECT_EQ(cycles(work), 400 + 200 / 2);
}

TEST(CostFormula, MissingWarpsCostTheirShare) {
  BlockWork work = block();
  work.wanted_warps = 16;
  EXPECT_EQ(cycles(work), 400 + 400 * 12 / 16);
}

TEST(CostFormula, MissingBlocksCostTheirShare) {
  BlockWork work = block();
  work.wanted_blocks = 3;
  EXPECT_EQ(cycles(work), 400 + 400 * 2 * 30 / 100) << "an SM has one";
  work.shared_bytes = 0;
  work.registers = 128;  // four blocks an SM
  EXPECT_EQ(cycles(work), 400);
}

TEST(CostFormula, LatencyIsHiddenByOtherBlocksOnly) {
  BlockWork work = block();
  work.latency_cycles = 1000;
  EXPECT_EQ(cycles(work), 1400);
  work.shared_bytes = 0;
  work.registers = 128;  // four blocks an SM
  work.blocks = 40;
  EXPECT_EQ(cycles(work), 4 * 400);
}

TEST(CostFormula, WavesAndTheRestOfOne) {
  BlockWork work = block();
  for (const auto& [blocks, waves] : {std::pair{1, 1}, {10, 1}, {11, 2}, {20, 2}, {21, 3}}) {
    work.blocks = blocks;
    EXPECT_EQ(cycles(work), waves * 400) << blocks;
  }
}

TEST(CostFormula, MemoryHidesMostOfComputing) {
  BlockWork work = block();
  work.dram_bytes = 3000;
  EXPECT_EQ(cycles(work), 3000 + 400 / 10);
  work.dram_bytes = 300;
  EXPECT_EQ(cycles(work), 400 + 300 / 10);
}

TEST(CostFormula, PassesLaunchAndMove) { EXPECT_EQ(pass_price(5, kCosts), 7 + 5 * 1000); }

TEST(CostEntries, NameEveryMemberOnce) {
  Costs costs = costs_of(parse_target("sm_90a"));
  std::set<std::string_view> names;
  std::set<std::int64_t*> values;
  for (const CostEntry& entry : entries_of(costs)) {
    names.insert(entry.name);
    values.insert(entry.value);
    EXPECT_GE(*entry.value, 0) << entry.name;
  }
  EXPECT_EQ(names.size(), sizeof(Costs) / sizeof(std::int64_t));
  EXPECT_EQ(values.size(), names.size());
  EXPECT_TRUE(names.contains("wgmma.loads.latency"));
}

double term(const std::vector<CostTerm>& terms, std::string_view entry) {
  for (const CostTerm& one : terms)
    if (one.entry == entry) return one.picoseconds;
  return 0;
}

TEST(CostTerms, SayWhatAnEntryAccountsFor) {
  const Target target = parse_target("sm_90a");
  // A large depthwise convolution: memory bounds it, so almost all of the time is the rate of DRAM.
  const ConvSpec spec = parse_spec("input=64,64,112,112 weight=64,1,3,3 padding=1,1 groups=64 math=ieee");
  const std::vector<ConvPlan> plans = enumerate_plans(spec, target, 3);
  const auto terms = cost_terms(spec, target, 3);
  ASSERT_EQ(terms.size(), plans.size());
  const auto cost = static_cast<double>(plans[0].cost);
  EXPECT_LT(term(terms[0], "fma.dram_bytes_per_microsecond"), -0.8 * cost);
  EXPECT_GT(term(terms[0], "fma.picoseconds_per_cycle"), 0);
  EXPECT_NEAR(term(terms[0], "fma.picoseconds_per_cycle") - term(terms[0], "fma.dram_bytes_per_microsecond"), cost,
              0.05 * cost);
  EXPECT_EQ(term(terms[0], "wgmma.launches.launch"), 0);
}

TEST(CostTerms, LaunchesOfTensorCoresAreTimes) {
  const Target target = parse_target("sm_90a");
  const ConvSpec spec = parse_spec("input=8,64,28,28 weight=64,64,3,3 padding=1,1 math=tf32");
  const auto terms = cost_terms(spec, target, 1);
  const auto launch = static_cast<double>(costs_of(target).wgmma.launches.launch);
  EXPECT_NEAR(term(terms.at(0), "wgmma.launches.launch"), launch, 0.01 * launch);
}

/// The terms of the cheapest plan of `direct`.
std::vector<CostTerm> terms_of_direct(const std::string& text) {
  const ConvSpec spec = parse_spec(text + " math=ieee");
  const Target target = parse_target("sm_90a");
  const std::vector<ConvPlan> plans = enumerate_plans(spec, target, SIZE_MAX);
  const auto terms = cost_terms(spec, target, SIZE_MAX);
  for (std::size_t i = 0; i < plans.size(); ++i)
    if (plans[i].family() == Family::direct) return terms.at(i);
  ADD_FAILURE() << "no kernel of direct";
  return {};
}

TEST(CostTerms, SingleElementsOfDirectWait) {
  const std::string depthwise = "input=1,88,10,10 weight=88,1,3,3 padding=1,1 groups=88";
  const std::string nhwc = " input_layout=nhwc output_layout=nhwc";
  const auto halves = terms_of_direct(depthwise + " dtype=bf16"), floats = terms_of_direct(depthwise);
  EXPECT_GT(term(halves, "direct.single.register_wait"), 0);
  EXPECT_EQ(term(halves, "direct.single.async_wait"), 0);
  EXPECT_EQ(term(floats, "direct.single.register_wait"), 0);
  EXPECT_GT(term(floats, "direct.single.async_wait"), 0);
  EXPECT_EQ(term(floats, "direct.single.wavefront_percent"), 0) << "lanes run along rows";
  // Copies of four elements are no single ones.
  EXPECT_EQ(term(terms_of_direct("input=1,88,40,40 weight=88,1,3,3 padding=1,1 groups=88"), "direct.single.async_wait"),
            0);
  // In NHWC, most of a large tensor's time is transactions of the L1 cache.
  const auto large = terms_of_direct("input=32,96,56,56 weight=96,1,3,3 padding=1,1 groups=96" + nhwc);
  EXPECT_GT(term(large, "direct.single.wavefront_percent"), 5 * term(large, "direct.copies.nhwc"));
}

TEST(CostTerms, SingleElementsAreOfGroupsWithOneChannel) {
  for (const std::string text : {"input=1,88,10,10 weight=44,2,3,3 padding=1,1 groups=44 dtype=bf16",
                                 "input=1,1,10,10 weight=44,1,3,3 padding=1,1 dtype=bf16"})
    for (const CostTerm& one : terms_of_direct(text))
      EXPECT_FALSE(one.entry.starts_with("direct.single.")) << one.entry;
}

TEST(WgmmaPrice, DramIsOfTensorsThatTheCacheDoesNotHold) {
  const auto dram = [](const std::string& text) {
    double most = 0;
    for (const auto& terms : cost_terms(parse_spec(text + " math=tf32 layout=nhwc"), parse_target("sm_90a"), 8))
      most = std::min(most, term(terms, "wgmma.memory.dram_bytes_per_microsecond"));
    return most;
  };
  EXPECT_LT(dram("input=16,64,512,512 weight=128,64,1,1"), 0) << "faster memory, less time";
  EXPECT_EQ(dram("input=16,64,56,56 weight=128,64,1,1"), 0);
}

// Measured with packed weights of 59 MB, and unpacked: 117.5 and 80.7 us.
TEST(WgmmaPrice, PackingBeyondL2TakesDramTwice) {
  const ConvPlan plan =
      make_plan(parse_spec("input=1,1280,24,24 weight=1280,1280,3,3 padding=1 math=tf32"), parse_target("sm_90a"));
  const auto* tiling = plan.tiling<WgmmaTiling>();
  ASSERT_NE(tiling, nullptr);
  EXPECT_FALSE(tiling->packs_weights());
  const auto dram = [](const std::string& text) {
    double least = 0;
    for (const auto& terms : cost_terms(parse_spec(text + " dtype=bf16 layout=nhwc"), parse_target("sm_90a"), 8))
      least = std::min(least, term(terms, "wgmma.memory.dram_bytes_per_microsecond"));
    return least;
  };
  EXPECT_LT(dram("input=1,2560,12,12 weight=1280,2560,3,3 padding=1"), -1e7) << "picoseconds: 2 * 59 MB";
  EXPECT_EQ(dram("input=1,256,12,12 weight=1280,256,3,3 padding=1"), 0);
}

// Measured, microseconds: transposed before and not, 28.0 and 44.4, 21.4 and 25.0; of fp32, whose warps then split in
// place, 102 and 80, 38.3 and 32.3.
TEST(WgmmaPrice, TransposesPlanesOfNoWholeVectors) {
  const auto tiling_of = [](const char* text) {
    return *make_plan(parse_spec(text), parse_target("sm_90a")).tiling<WgmmaTiling>();
  };
  EXPECT_TRUE(tiling_of("input=128,768,6,6 weight=1536,768,1,1 dtype=bf16 bias").transposes_input());
  EXPECT_TRUE(tiling_of("input=32,512,14,14 weight=1024,512,1,1 dtype=bf16").transposes_input());
  EXPECT_FALSE(tiling_of("input=32,512,14,14 weight=1024,512,1,1").transposes_input());
  EXPECT_FALSE(tiling_of("input=8,1024,14,14 weight=512,1024,1,1").transposes_input());
}

// Measured, microseconds: the slowest of 28 candidates, which loaded vectors and split them one at a time, 234, or
// whose rows were a few more than whole batches, 309; the best 89 and 242.
TEST(WgmmaPrice, SplitsInPlaceWhatTmaBrings) {
  for (const char* text : {"input=32,512,14,14 weight=1024,512,1,1 layout=nhwc bias",
                           "input=32,224,56,56 weight=448,224,1,1 layout=nhwc bias"}) {
    const ConvPlan plan = make_plan(parse_spec(text), parse_target("sm_90a"));
    const auto* tiling = plan.tiling<WgmmaTiling>();
    ASSERT_NE(tiling, nullptr) << text;
    EXPECT_TRUE(tiling->splits_im2col()) << text;
    const WgmmaGeometry geometry(plan.convolution().problem, *tiling);
    const std::int64_t threads = 96, rows = geometry.run_pixels() * tiling->pipeline.slices;
    const auto [batch, batches] = geometry.split_rows();
    EXPECT_LE(batch, 6) << text;
    EXPECT_GE(batch * batches * threads, rows) << text;
    EXPECT_LT((batch - 1) * batches * threads, rows) << text;
  }
}

// Choices that candidates on an H100 showed to be right: KernelBench 76, 87, and their stages.
TEST(WgmmaPrice, ReadsLargeTensorsOnceAndInWholePixels) {
  for (const char* text : {"input=64,64,1,524280 weight=128,64,1,3 stride=1,3 dilation=1,4 math=tf32 layout=nhwc",
                           "input=16,64,1024,1024 weight=128,64,1,1 math=tf32 layout=nhwc"}) {
    const ConvPlan plan = make_plan(parse_spec(text), parse_target("sm_90a"));
    const auto* tiling = plan.tiling<WgmmaTiling>();
    ASSERT_NE(tiling, nullptr) << text;
    EXPECT_EQ(tiling->tile.channels, 128) << text;
    EXPECT_EQ(tiling->pipeline.stages * tiling->pipeline.slices % 16, 0) << text;
  }
}

// Measured on an H200, microseconds, split and not: 8.0 and 10.1, 7.3 and 8.9, 7.7 and 9.5.
TEST(WgmmaPrice, SplitsTheReductionOfFewOutputs) {
  for (const char* more : {"math=tf32", "math=tf32 layout=nhwc", "dtype=bf16"}) {
    const std::string text = std::string("input=4,736,7,7 weight=128,736,1,1 bias ") + more;
    const ConvPlan plan = make_plan(parse_spec(text), parse_target("sm_90a"));
    const auto* tiling = plan.tiling<WgmmaTiling>();
    ASSERT_NE(tiling, nullptr) << text;
    EXPECT_GT(tiling->split_k, 1) << text;
  }
}

// Measured on an H200, microseconds of wgmma_rows and wgmma: 138 and 100, 27.4 and 21.0; 142 and 171.
TEST(WgmmaRowsPrice, HidesLessOfAStoreBehindFewChannels) {
  const auto family_of = [](const char* text) { return make_plan(parse_spec(text), parse_target("sm_90a")).family(); };
  EXPECT_EQ(family_of("input=128,16,96,96 weight=32,16,3,3 padding=1 math=tf32 bias"), Family::wgmma);
  EXPECT_EQ(family_of("input=32,16,55,55 weight=64,16,3,3 padding=1 math=tf32 bias"), Family::wgmma);
  EXPECT_EQ(family_of("input=1,64,640,959 weight=64,64,3,3 padding=1 math=tf32 bias"), Family::wgmma_rows);
}

// Measured, microseconds of direct and wgmma: 17.5 and 5.4, 54.7 and 8.6, 216.9 and 27.7, 41.4 and 16.4, 22.6 and 5.8;
// 62.9 and 119.1.
TEST(DirectPrice, BesideTensorCoresHasALaunchAndConversionsOfItsOwn) {
  const auto family_of = [](const char* text) { return make_plan(parse_spec(text), parse_target("sm_90a")).family(); };
  EXPECT_EQ(family_of("input=1,144,1,1 weight=6,144,1,1 math=tf32 layout=nhwc"), Family::wgmma);
  EXPECT_EQ(family_of("input=2,64,13,13 weight=33,64,1,1 dtype=bf16"), Family::wgmma);
  EXPECT_EQ(family_of("input=8,3,224,224 weight=384,3,16,16 stride=16 dtype=bf16 layout=nhwc"), Family::wgmma);
  EXPECT_EQ(family_of("input=1,3,641,641 weight=32,3,3,3 stride=2 dtype=bf16 bias"), Family::wgmma);
  EXPECT_EQ(family_of("input=1,64,7,7 weight=4,32,1,1 groups=2 math=tf32 bias"), Family::wgmma);
  EXPECT_EQ(family_of("input=6,32,352,352 weight=4,32,3,3 padding=1 math=tf32"), Family::direct);
}

TEST(CostTerms, NoneWithoutOutputs) {
  EXPECT_EQ(cost_terms(parse_spec("input=0,4,8,8 weight=4,4,3,3"), parse_target("sm_90a"), 4).size(), 1u);
}

}  // namespace
}  // namespace jitconv::codegen
