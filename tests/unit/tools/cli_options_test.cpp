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

TEST(CliRunOptions, HelpSaysWhatIsForTheHost) {
  const ProcessResult result = run_process(JITCONV_RUN, {"--help"});
  EXPECT_EQ(result.exit_code, 0);
  for (const char* option : {"--device=", "--counters", "--landing=", "--work-limit=", "--full-size", "--seed="})
    EXPECT_NE(result.out.find(option), std::string::npos) << option;
}

}  // namespace
}  // namespace jitconv::test
