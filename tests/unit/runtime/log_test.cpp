// What JITCONV_LOG lets through, and where it goes. Each case runs in a process of its own, because the environment is
// read once.
#include "runtime/log.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

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
              "JITCONV_LOG is loud, must be off, error, warn, info or debug: using warn\n"
              "jitconv: error: one\njitconv: warning: two\n$");
}

TEST_F(LogDeathTest, ControlCharactersAreShownAndLinesIndented) {
  const auto say = [](const char* level, const char* message) {
    setenv("JITCONV_LOG", level, 1);
    log(LogLevel::error, message);
    _exit(0);
  };
  const testing::ExitedWithCode ok(0);
  EXPECT_EXIT(say("", "a\x1b[31m\tb\n\nc\xc2\x9b"), ok, "^jitconv: error: a.x1b.31m.x09b\n  \n  c.xc2.x9b\n$");
  EXPECT_EXIT(say("x\njitconv: error: y\x1b", "z"), ok,
              "^jitconv: warning: JITCONV_LOG is x.x0ajitconv: error: y.x1b, must be .*\njitconv: error: z\n$");
}

/// A directory that a test and the process it starts, which begins the test anew, have in common.
class SharedDirectory {
 public:
  SharedDirectory() : given_(std::getenv(kVariable)) {
    if (given_ == nullptr) setenv(kVariable, own_.path().c_str(), 1);
  }
  ~SharedDirectory() {
    if (given_ == nullptr) unsetenv(kVariable);
  }
  SharedDirectory(const SharedDirectory&) = delete;
  SharedDirectory& operator=(const SharedDirectory&) = delete;
  std::string path() const { return given_ == nullptr ? own_.path() : given_; }
  bool is_own() const { return given_ == nullptr; }

 private:
  static constexpr const char* kVariable = "JITCONV_LOG_TEST_DIRECTORY";
  const TemporaryDirectory own_;
  const char* const given_;
};

std::string contents(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

[[noreturn]] void log_two_to(const std::string& file) {
  setenv("JITCONV_LOG_FILE", file.c_str(), 1);
  setenv("JITCONV_LOG", "warn", 1);
  log(LogLevel::error, "one");
  if (chdir("/") != 0) _exit(1);
  log(LogLevel::error, "two");
  _exit(0);
}

TEST_F(LogDeathTest, AFileIsAppendedTo) {
  const SharedDirectory directory;
  const std::string file = directory.path() + "/log";
  if (directory.is_own()) std::ofstream(file) << "before\n";
  EXPECT_EXIT(log_two_to(file), testing::ExitedWithCode(0), "^$");
  EXPECT_EQ(contents(file), "before\njitconv: error: one\njitconv: error: two\n");
  const auto log_from_there = [&] {
    ASSERT_EQ(chdir(directory.path().c_str()), 0);
    log_two_to("relative");
  };
  EXPECT_EXIT(log_from_there(), testing::ExitedWithCode(0), "^$");
  EXPECT_EQ(contents(directory.path() + "/relative"), "jitconv: error: one\njitconv: error: two\n");
}

TEST_F(LogDeathTest, AFileThatCannotBeWrittenIsReportedOnce) {
  const SharedDirectory directory;
  const std::string target = directory.path() + "/target", link = directory.path() + "/link",
                    fifo = directory.path() + "/fifo";
  if (directory.is_own()) {
    std::filesystem::create_symlink(target, link);
    ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  }
  for (const std::string& file :
       {directory.path() + "/none/log", link, fifo, directory.path(), std::string("/dev/full")})
    EXPECT_EXIT(log_two_to(file), testing::ExitedWithCode(0),
                "^jitconv: warning: JITCONV_LOG_FILE is " + file +
                    ", which cannot be written: .*\njitconv: error: one\njitconv: error: two\n$");
  EXPECT_FALSE(std::filesystem::exists(target)) << "the link was followed";
}

TEST_F(LogDeathTest, AFileAtItsLimitDoesNotEndTheProcess) {
  const SharedDirectory directory;
  const std::string file = directory.path() + "/log";
  const auto with_limit = [&] {
    const rlimit limit{4, 4};
    setrlimit(RLIMIT_FSIZE, &limit);
    log_two_to(file);
  };
  EXPECT_EXIT(with_limit(), testing::ExitedWithCode(0), "");
  EXPECT_EQ(contents(file), "jitc");
}

TEST_F(LogDeathTest, ABrokenStderrDoesNotEndTheProcess) {
  const auto without_reader = [] {
    int ends[2];
    if (pipe(ends) != 0 || dup2(ends[1], STDERR_FILENO) < 0) _exit(1);
    close(ends[0]);
    close(ends[1]);
    log_two_to("");
  };
  EXPECT_EXIT(without_reader(), testing::ExitedWithCode(0), "");
  EXPECT_EXIT((close(STDERR_FILENO), log_two_to("")), testing::ExitedWithCode(0), "");
}

TEST_F(LogDeathTest, SignalsOfTheProgramStayPending) {
  const auto with_a_signal = [] {
    sigset_t signals, pending;
    sigemptyset(&signals);
    sigaddset(&signals, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    raise(SIGPIPE);
    log(LogLevel::error, "one");
    sigpending(&pending);
    _exit(sigismember(&pending, SIGPIPE) == 1 ? 0 : 1);
  };
  EXPECT_EXIT(with_a_signal(), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace jitconv::runtime_test
