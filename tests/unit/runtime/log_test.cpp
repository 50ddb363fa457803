// What JITCONV_LOG lets through. Each case runs in a process of its own, because the level is read once.
#include "runtime/log.h"

#include <unistd.h>

#include "runtime_test_support.h"

namespace jitconv::runtime_test {
namespace {

using runtime::log;
using runtime::LogLevel;

class LogDeathTest : public testing::Test {
 protected:
  void SetUp() override { testing::FLAGS_gtest_death_test_style = "threadsafe"; }

  [[noreturn]] static void log_one_of_each(const char* level) {
    setenv("JITCONV_LOG", level, 1);
    log(LogLevel::error, "one");
    log(LogLevel::warn, "two");
    log(LogLevel::info, "three");
    log(LogLevel::debug, "four");
    _exit(0);
  }
};

TEST_F(LogDeathTest, LevelsIncludeTheOnesAbove) {
  const testing::ExitedWithCode ok(0);
  EXPECT_EXIT(log_one_of_each("off"), ok, "^$");
  EXPECT_EXIT(log_one_of_each("error"), ok, "^jitconv: error: one\n$");
  EXPECT_EXIT(log_one_of_each(""), ok, "^jitconv: error: one\njitconv: warning: two\n$");
  EXPECT_EXIT(log_one_of_each("info"), ok, "^jitconv: error: one\njitconv: warning: two\njitconv: info: three\n$");
  EXPECT_EXIT(log_one_of_each("debug"), ok, "debug: four\n$");
}

TEST_F(LogDeathTest, AnUnknownLevelIsReportedAndTakenForTheDefault) {
  EXPECT_EXIT(log_one_of_each("loud"), testing::ExitedWithCode(0),
              "JITCONV_LOG=loud is none of off, error, warn, info, debug: using warn\n"
              "jitconv: error: one\njitconv: warning: two\n$");
}

}  // namespace
}  // namespace jitconv::runtime_test
