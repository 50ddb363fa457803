// Which options of jitconv-run go together. Nothing is compiled or run: every case is refused before that.
#include <gtest/gtest.h>

#include "unit/tools/cli_process.h"

namespace jitconv::test {
namespace {

using Arguments = std::vector<std::string>;

void expect_usage_error(Arguments arguments, const std::string& about) {
  arguments.insert(arguments.begin(), "--spec=input=1,4,8,8 weight=4,4,3,3");
  const ProcessResult result = run_process(JITCONV_RUN, arguments);
  EXPECT_EQ(result.exit_code, 2) << about << "\n" << result.err;
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(lines_of(result.err).size(), 1u) << result.err;
  EXPECT_NE(result.err.find(about), std::string::npos) << result.err;
}

TEST(CliRunOptions, TheHostTakesNoOptionOfTheGpu) {
  for (const char* option : {"--tune", "--candidates=3", "--repeat=5", "--warmup=1", "--no-check", "--cold",
                             "--compile-only", "--require-device"}) {
    const std::string name = std::string(option).substr(0, std::string(option).find('='));
    expect_usage_error({"--device=host", option}, name + " and --device=host exclude each other");
  }
}

TEST(CliRunOptions, TheGpuTakesNoOptionOfTheHost) {
  for (const char* option : {"--counters", "--landing=late", "--work-limit=5", "--full-size"}) {
    const std::string name = std::string(option).substr(0, std::string(option).find('='));
    expect_usage_error({"--device=gpu", option}, name + " and --device=gpu exclude each other");
    expect_usage_error({"--compile-only", option}, name + " and --compile-only exclude each other");
  }
}

TEST(CliRunOptions, CompilingOnlyExcludesWhatNeedsADevice) {
  expect_usage_error({"--compile-only", "--tune"}, "--tune and --compile-only exclude each other");
  expect_usage_error({"--compile-only", "--require-device"}, "--require-device and --compile-only exclude each other");
  expect_usage_error({"--compile-only", "--device=gpu"}, "--device=gpu and --compile-only exclude each other");
}

TEST(CliRunOptions, ValuesAreNamedWithTheirRule) {
  expect_usage_error({"--device=tpu"}, "--device: 'tpu' is neither gpu nor host");
  expect_usage_error({"--landing=soon"}, "--landing: 'soon' is none of early, late and random");
  expect_usage_error({"--work-limit=0"}, "--work-limit must be at least 1");
  expect_usage_error({"--full-size", "--work-limit=5"}, "--full-size and --work-limit exclude each other");
  expect_usage_error({"--exact", "--positive"}, "--exact and --positive exclude each other");
  expect_usage_error({"--repeat=0"}, "--repeat must be at least 1");
  expect_usage_error({"--seed=many"}, "seed");
}

/// The first words of the table's rows, without a compiler to make anything of them.
std::vector<std::string> rows_of(Arguments arguments) {
  arguments.insert(arguments.end(), {"--compile-only", "--arch=sm_75"});
  ProcessOptions options;
  options.environment = {{"JITCONV_NVRTC_PATH", "/nonexistent/libnvrtc.so"}, {"JITCONV_CACHE", "off"}};
  const ProcessResult result = run_process(JITCONV_RUN, arguments, options);
  EXPECT_EQ(result.exit_code, 4) << result.err;
  std::vector<std::string> names;
  for (const std::string& line : lines_of(result.out))
    if (line.find("  failed") != std::string::npos) names.push_back(line.substr(0, line.find(' ')));
  return names;
}

TEST(CliRunOptions, AllHasTensorCoreRowsBesideTheHeadlineCases) {
  const std::vector<std::string> names = rows_of({"--all"});
  ASSERT_EQ(names.size(), 64u);
  EXPECT_EQ(std::vector<std::string>(names.begin(), names.begin() + 5),
            (std::vector<std::string>{"A", "A_tf32", "A_bf16", "A_bias", "B"}));
  // With one mode or type for all there is nothing to tell apart.
  EXPECT_EQ(rows_of({"--all", "--dtype=f16"}).size(), 56u);
  EXPECT_EQ(rows_of({"--all", "--math=ieee"}).size(), 56u);
}

TEST(CliRunOptions, WhatNamesAConvolutionNarrowsAll) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(rows_of({"--all", "--config=D,A_bf16"}), (Names{"D", "A_bf16"}));
  EXPECT_EQ(rows_of({"--all", "--spec=input=1,4,8,8 weight=4,4,3,3"}), Names{"spec"});
  EXPECT_EQ(rows_of({"--all", "--input=1,4,8,8", "--weight=4,4,3,3"}), Names{"spec"});
  const ProcessResult half = run_process(JITCONV_RUN, {"--all", "--input=1,4,8,8"});
  EXPECT_EQ(half.exit_code, 2);
  EXPECT_NE(half.err.find("--input without --weight"), std::string::npos) << half.err;
}

TEST(CliRunOptions, AJsonFileThatCannotBeWrittenFailsBeforeAnyWork) {
  const TemporaryDirectory directory;
  const std::string path = directory.file("none/result.json");
  // Work would say that there is no compiler.
  const Arguments arguments = {"--device=host", "--config=A", "--json=" + path};
  ProcessOptions options;
  options.environment = {{"JITCONV_HOST_CXX", "/nonexistent/c++"}};
  const ProcessResult result = run_process(JITCONV_RUN, arguments, options);
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err, "jitconv-run: cannot write " + path + ": No such file or directory\n");
}

TEST(CliRunOptions, ARunThatDoesNotBeginLeavesTheJsonFileAlone) {
  const TemporaryDirectory directory;
  const auto run = [&] {
    ProcessOptions options;
    options.environment = {{"JITCONV_HOST_CXX", "/nonexistent/c++"}};
    return run_process(JITCONV_RUN, {"--device=host", "--config=A", "--json=" + directory.file("j")}, options)
        .exit_code;
  };
  EXPECT_EQ(run(), 4);
  EXPECT_THROW(read_file(directory.file("j")), std::runtime_error) << "an empty file was left";
  write_file(directory.file("j"), "yesterday's");
  EXPECT_EQ(run(), 4);
  EXPECT_EQ(read_file(directory.file("j")), "yesterday's");
}

TEST(CliRunOptions, HelpSaysWhatIsForTheHost) {
  const ProcessResult result = run_process(JITCONV_RUN, {"--help"});
  EXPECT_EQ(result.exit_code, 0);
  for (const char* option : {"--device=", "--counters", "--landing=", "--work-limit=", "--full-size", "--seed="})
    EXPECT_NE(result.out.find(option), std::string::npos) << option;
}

}  // namespace
}  // namespace jitconv::test
