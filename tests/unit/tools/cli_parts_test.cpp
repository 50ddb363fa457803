// The parts of the programs that can be tested without running them: tables, log reading, rooflines, tuning texts.
#include <gtest/gtest.h>

#include "tools/compile_table.h"
#include "tools/progress.h"
#include "tools/roofline.h"
#include "tools/table.h"
#include "tools/tool.h"
#include "tools/tune.h"

namespace jitconv::tools {
namespace {

TEST(Table, ColumnsAreAsWideAsTheirWidestCell) {
  Table table({"a", "number"}, {Align::left, Align::right});
  table.add({"longer", "1"});
  table.add({"b", "23"});
  EXPECT_EQ(table.text(),
            "a       number\n"
            "------  ------\n"
            "longer       1\n"
            "b           23\n");
  EXPECT_THROW(table.add({"one cell"}), std::logic_error);
}

TEST(RowFormat, WidthsAreFixedBeforeTheFirstRow) {
  const RowFormat format({{"name", Align::left, 6}, {"ms", Align::right}, {"note", Align::left}});
  EXPECT_EQ(format.heading(),
            "name    ms  note\n"
            "------  --  ----\n");
  EXPECT_EQ(format.line({"a", "1", "x"}), "a        1  x\n");
  EXPECT_EQ(format.line({"a", "1", ""}), "a        1\n");
  EXPECT_EQ(format.line({"a name", "123", "x"}), "a name  123  x\n") << "too wide, and yet all of it";
  EXPECT_THROW(format.line({"one cell"}), std::logic_error);
}

TEST(ProgressText, SaysHowFarAndHowLong) {
  EXPECT_EQ(progress_text(0, 44, "A", 3.4, 100), "[--------------------] 0/44 A, 0:03");
  EXPECT_EQ(progress_text(11, 44, "B_bias", 60, 100), "[#####---------------] 11/44 B_bias, 1:00, about 3:00 left");
  EXPECT_EQ(progress_text(1, 2, "A", 3661, 100), "[##########----------] 1/2 A, 1:01:01, about 1:01:01 left");
  EXPECT_EQ(progress_text(44, 44, "D", 5, 100), "[####################] 44/44 D, 0:05");
  EXPECT_EQ(progress_text(11, 44, "B_bias", 60, 30), "[#####---------------] 11/44 B");
}

TEST(SpillBytes, SumsStoresAndLoadsOfEveryKernel) {
  const std::string one =
      "ptxas info    : Function properties for k\n"
      "    16 bytes stack frame, 12 bytes spill stores, 8 bytes spill loads\n"
      "ptxas info    : Used 255 registers, used 1 barriers\n";
  EXPECT_EQ(spill_bytes(one), 20);
  EXPECT_EQ(spill_bytes(one + one), 40);
  EXPECT_EQ(spill_bytes("    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"), 0);
  EXPECT_EQ(spill_bytes(""), std::nullopt);
  EXPECT_EQ(spill_bytes("no spill stores were seen"), std::nullopt);
}

TEST(DistinguishingLines, DropsWhatAllShare) {
  const std::vector<std::string> lines =
      distinguishing_lines({"threads: 128\ntile: 2x4\n", "threads: 128\ntile: 4x4\nstages: 3\n"});
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], "tile: 2x4");
  EXPECT_EQ(lines[1], "tile: 4x4; stages: 3");
  EXPECT_EQ(distinguishing_lines({"a: 1\n"}), std::vector<std::string>{""});
}

TEST(Roofline, FloorIsTheLargerOfBoth) {
  EXPECT_DOUBLE_EQ(floor_ms({50e9, 1e6}, 2e12, 50e12), 1.0);
  EXPECT_DOUBLE_EQ(floor_ms({1e6, 4e9}, 2e12, 50e12), 2.0);
}

TEST(Roofline, RateIsThatOfWhatTheFamilyComputesWith) {
  DeviceProperties device;
  device.name = "NVIDIA H200";
  const Ceilings ceilings = ceilings_of(device);
  ConvSpec spec = parse_spec("input=8,64,512,1024 weight=128,64,3,3 math=ieee");
  const auto rate = [&] { return ceilings.flop_per_s(codegen::make_plan(spec, Target{})); };
  EXPECT_DOUBLE_EQ(rate(), 66.9e12);
  spec.math = MathMode::tf32;
  EXPECT_DOUBLE_EQ(rate(), 389e12);
  spec.math = MathMode::fp32;
  spec.dtype = DataType::bf16;
  EXPECT_DOUBLE_EQ(rate(), 776e12);
}

TEST(Roofline, UsesMeasuredRatesWhereThereAreSome) {
  DeviceProperties device;
  device.name = "NVIDIA H200";
  EXPECT_DOUBLE_EQ(ceilings_of(device).bytes_per_s, 4.23e12);
  EXPECT_DOUBLE_EQ(ceilings_of(device).fma_flop_per_s, 66.9e12);
  EXPECT_NE(ceilings_of(device).origin.find("measured"), std::string::npos);
}

TEST(Roofline, ComputesFromClocksElsewhere) {
  DeviceProperties device;
  device.name = "NVIDIA A100-SXM4-40GB";
  device.target = parse_target("sm_80");
  device.target.sm_count = 108;
  device.clock_hz = 1.41e9;
  device.memory_bytes_per_s = 1.555e12;
  // The data sheet's 19.5 TFLOP/s.
  EXPECT_NEAR(ceilings_of(device).fma_flop_per_s, 19.5e12, 0.05e12);
  EXPECT_EQ(ceilings_of(device).tf32_flop_per_s, 0);  // of A100's, which no family uses
  EXPECT_DOUBLE_EQ(ceilings_of(device).bytes_per_s, 1.555e12);
}

TEST(Timing, MedianOfOddAndEvenCounts) {
  Timing timing;
  EXPECT_EQ(timing.median(), 0);
  timing.ms = {1, 2, 9};
  EXPECT_EQ(timing.median(), 2);
  timing.ms = {1, 2, 4, 9};
  EXPECT_EQ(timing.median(), 3);
}

TEST(TuneResult, RatioComparesTheFirstWithTheBest) {
  TuneResult result;
  EXPECT_FALSE(result.any_measured());
  EXPECT_EQ(result.ratio(), 0);
  result.candidates.resize(3);
  result.candidates[0].ms = 3.0;
  result.candidates[2].ms = 2.0;
  result.best = 2;
  EXPECT_DOUBLE_EQ(result.ratio(), 1.5);
  result.candidates[0].ms.reset();
  EXPECT_EQ(result.ratio(), 0);
}

TEST(ExitCodes, FollowTheErrors) {
  EXPECT_EQ(exit_code(ErrorCode::invalid_spec), 3);
  EXPECT_EQ(exit_code(ErrorCode::unsupported), 3);
  EXPECT_EQ(exit_code(ErrorCode::compile_failed), 4);
  EXPECT_EQ(exit_code(ErrorCode::compiler_missing), 4);
  EXPECT_EQ(exit_code(ErrorCode::no_driver), 5);
  EXPECT_EQ(exit_code(ErrorCode::no_device), 5);
  EXPECT_EQ(exit_code(ErrorCode::cuda), 1);
  EXPECT_EQ(exit_code(ErrorCode::internal), 1);
  EXPECT_EQ(exit_code(ErrorCode::kernel_fault), 1);
}

}  // namespace
}  // namespace jitconv::tools
