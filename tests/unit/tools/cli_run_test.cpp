// jitconv-run from end to end on a driver whose device is the host (cli_fake_libcuda.cpp): tables, JSON, tuning, and
// that every check it makes fires. Generated kernels are compiled by NVRTC and not run.
#include <gtest/gtest.h>

#include <algorithm>

#include "jitconv/spec.h"
#include "unit/tools/cli_process.h"

namespace jitconv::test {
namespace {

using Arguments = std::vector<std::string>;

class CliRunOnFake : public ::testing::Test {
 protected:
  ProcessResult run(const std::string& spec, Arguments more = {}, const std::string& fault = "") {
    ProcessOptions options;
    options.environment = {{"JITCONV_CACHE_DIR", directory_.file("cache")},
                           {"LD_LIBRARY_PATH", FAKE_LIBCUDA_DIRECTORY},
                           {"JITCONV_FAKE_SPEC", spec},
                           {"JITCONV_FAKE_FAULT", fault}};
    more.insert(more.begin(), "--spec=" + spec);
    return run_process(JITCONV_RUN, more, options);
  }

  TemporaryDirectory directory_;
};

const std::string kPlain = "input=2,4,12,20 weight=8,4,3,3 padding=1";

/// The cells of the table's only row.
std::vector<std::string> row_of(const std::string& table) {
  std::vector<std::string> cells;
  for (const std::string& line : lines_of(table)) {
    if (line.rfind("spec ", 0) != 0) continue;
    std::size_t begin = 0;
    while ((begin = line.find_first_not_of(' ', begin)) != std::string::npos) {
      const std::size_t end = std::min(line.find(' ', begin), line.size());
      cells.push_back(line.substr(begin, end - begin));
      begin = end;
    }
  }
  return cells;
}

TEST_F(CliRunOnFake, RightResultsPass) {
  for (const char* more : {"", " bias residual activation=gelu_tanh", " dtype=f16 bias", " dtype=bf16 layout=nhwc",
                           " alignment=4 activation=relu"}) {
    const ProcessResult result = run(kPlain + more, {"--repeat=2", "--warmup=1"});
    ASSERT_EQ(result.exit_code, 0) << more << "\n" << result.out << result.err;
    EXPECT_EQ(result.err, "") << "no terminal, no progress";
    const std::vector<std::string> cells = row_of(result.out);
    ASSERT_EQ(cells.size(), 13u) << result.out;
    EXPECT_EQ(cells[2], "ok");
    EXPECT_LE(std::stod(cells[4]), 1.0) << "error over bound";
    EXPECT_GT(std::stod(cells[5]), 0.0) << "ms";
    EXPECT_EQ(cells[9], "exceeded") << "the fake L2 has 1 KB";
    EXPECT_NE(result.out.find("Fake GPU (sm_90a), CUDA driver 13.0, random data"), std::string::npos) << result.out;
    EXPECT_NE(result.out.find("roofline: Fake GPU: 0.06 TB/s"), std::string::npos) << result.out;
  }
}

TEST_F(CliRunOnFake, KernelsThatPackWeightsFirstPass) {
  const ProcessResult result = run("input=1,64,16,32 weight=128,64,3,3 padding=1 bias math=tf32", {"--repeat=1"});
  ASSERT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_EQ(row_of(result.out).at(1), "wgmma");
  EXPECT_EQ(row_of(result.out).at(2), "ok");
}

TEST_F(CliRunOnFake, ExactDataAreComparedBitForBit) {
  EXPECT_EQ(run(kPlain + " bias", {"--exact", "--repeat=1"}).exit_code, 0);
  EXPECT_EQ(run(kPlain, {"--positive", "--repeat=1"}).exit_code, 0);
  // One unit in the last place is within the bound and not equal.
  EXPECT_EQ(run(kPlain, {"--repeat=1"}, "bit").exit_code, 0);
  const ProcessResult result = run(kPlain, {"--exact", "--repeat=1"}, "bit");
  EXPECT_EQ(result.exit_code, 1) << result.out;
  EXPECT_EQ(row_of(result.out).at(2), "WRONG");
}

TEST_F(CliRunOnFake, EveryCheckFires) {
  const std::map<std::string, std::string> faults = {
      {"value", "1 of 3840 outputs wrong"},
      {"skip", "1 outputs are NaN or were not written"},
      {"before", "1 bytes outside the results were written"},
      {"behind", "1 bytes outside the results were written"},
  };
  for (const auto& [fault, message] : faults) {
    const ProcessResult result = run(kPlain, {"--repeat=1"}, fault);
    EXPECT_EQ(result.exit_code, 1) << fault;
    EXPECT_EQ(row_of(result.out).at(2), "WRONG") << fault;
    EXPECT_NE(result.out.find(message), std::string::npos) << fault << "\n" << result.out;
  }
  EXPECT_EQ(run(kPlain, {"--repeat=1", "--no-check"}, "value").exit_code, 0);
}

TEST_F(CliRunOnFake, WhatDoesNotFitIsSkippedAndSaid) {
  const ProcessResult result = run(kPlain, {}, "memory");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(row_of(result.out).at(2), "skipped");
  EXPECT_NE(result.out.find("GB are free"), std::string::npos) << result.out;
  const ProcessResult tuned = run(kPlain, {"--tune", "--candidates=2"}, "memory");
  EXPECT_NE(tuned.out.find("was not measured: needs "), std::string::npos) << tuned.out;
}

TEST_F(CliRunOnFake, DriverTroubleHasItsOwnExitCodes) {
  const ProcessResult sticky = run(kPlain, {}, "sticky");
  EXPECT_EQ(sticky.exit_code, 1);
  EXPECT_NE(sticky.err.find("cuCtxSynchronize"), std::string::npos) << sticky.err;
  const ProcessResult missing = run(kPlain, {"--require-device"}, "no_device");
  EXPECT_EQ(missing.exit_code, 5);
  EXPECT_EQ(missing.out, "");
  EXPECT_NE(missing.err.find("no GPU"), std::string::npos) << missing.err;
  const ProcessResult compiled = run(kPlain, {"--compile-only"}, "no_device");
  EXPECT_EQ(compiled.exit_code, 0) << compiled.err;
  EXPECT_NE(compiled.out.find("1 of 1 compiled"), std::string::npos) << compiled.out;
  EXPECT_EQ(run(kPlain, {"--arch=sm_80"}).exit_code, 2) << "another arch than the device's";
}

TEST_F(CliRunOnFake, ColdAndWarmTimesFollowTheCache) {
  const std::vector<std::string> first = row_of(run(kPlain, {"--repeat=1"}).out);
  ASSERT_EQ(first.size(), 13u);
  EXPECT_NE(first[10], "-");
  EXPECT_NE(first[11], "-");
  const std::vector<std::string> second = row_of(run(kPlain, {"--repeat=1"}).out);
  EXPECT_EQ(second.at(10), "-") << "NVRTC did not run";
  EXPECT_NE(second.at(11), "-");
  EXPECT_NE(row_of(run(kPlain, {"--repeat=1", "--cold"}).out).at(10), "-");
}

TEST_F(CliRunOnFake, JsonHoldsEveryTime) {
  const ProcessResult result = run(kPlain, {"--repeat=3", "--json=-"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out.front(), '{') << "no table before it";
  for (const char* field : {"\"device\": {", "\"ceilings\": {", "\"ms_median\": ", "\"worst_error_over_bound\": ",
                            "\"every_output\": true", "\"outcome\": \"ok\"", "\"commit\": ", "\"key\": "}) {
    EXPECT_NE(result.out.find(field), std::string::npos) << field << "\n" << result.out;
  }
}

TEST_F(CliRunOnFake, TuneMeasuresEveryCandidate) {
  const ProcessResult result = run(kPlain, {"--tune", "--candidates=3", "--repeat=1"});
  ASSERT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_NE(result.out.find("the model's choice takes "), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("the best (rank "), std::string::npos) << result.out;
  const ProcessResult wrong = run(kPlain, {"--tune", "--candidates=2", "--repeat=1"}, "value");
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_NE(wrong.out.find("candidate 2: WRONG"), std::string::npos) << wrong.out;
}

TEST_F(CliRunOnFake, AConvolutionWithoutOutputsIsFine) {
  const ProcessResult result = run("input=0,4,12,20 weight=8,4,3,3", {});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_NE(result.out.find("no outputs"), std::string::npos) << result.out;
}

}  // namespace
}  // namespace jitconv::test
