// What becomes of compilations in flight when the process forks or exits. The fake NVRTC's exit handlers abort, or wait
// for ever in a child of fork(), while a compilation is in flight.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <optional>
#include <thread>

#include "runtime/compiler_use.h"
#include "runtime_test_support.h"

namespace jitconv::runtime_test {
namespace {

using std::chrono::milliseconds;

class ProcessEndDeathTest : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

/// Compiles in a thread of its own for 200 ms; returns once that is under way.
std::thread compile_slowly(const ConvSpec& spec, std::atomic<bool>* done = nullptr) {
  setenv("FAKE_NVRTC_MS", "200", 1);
  std::thread thread([spec, done] {
    compile(spec, parse_target("sm_90a"));
    if (done != nullptr) *done = true;
  });
  std::this_thread::sleep_for(milliseconds(100));
  return thread;
}

TEST_F(ProcessEndDeathTest, ExitWaitsForACompilation) {
  const auto leave_main = [] {
    compile_slowly(new_spec()).detach();
    std::exit(0);
  };
  EXPECT_EXIT(leave_main(), testing::ExitedWithCode(0), "^$");
}

TEST_F(ProcessEndDeathTest, AChildThatExitsDoesNotWaitForAThreadItDoesNotHave) {
  const auto fork_and_exit = [] {
    std::atomic<bool> done{false};
    std::thread thread = compile_slowly(new_spec(), &done);
    const pid_t child = fork();
    if (child == 0) {
      alarm(5);
      std::exit(0);
    }
    int status = 1;
    waitpid(child, &status, 0);
    thread.join();
    compile(new_spec(), parse_target("sm_90a"));  // the parent goes on
    std::_Exit(WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 1);
  };
  EXPECT_EXIT(fork_and_exit(), testing::ExitedWithCode(0), "^$");
}

TEST_F(ProcessEndDeathTest, AThreadThatForksWhileItCompilesDoesNotWaitForItself) {
  const auto fork_in_a_compilation = [] {
    compile(new_spec(), parse_target("sm_90a"));
    const runtime::CompilerUse use;
    const pid_t child = fork();
    if (child == 0) std::_Exit(0);
    int status = 1;
    waitpid(child, &status, 0);
    std::_Exit(status);
  };
  EXPECT_EXIT(fork_in_a_compilation(), testing::ExitedWithCode(0), "^$");
}

TEST_F(ProcessEndDeathTest, ThreadsMayForkAtOnceWhileOthersCompile) {
  const auto fork_everywhere = [] {
    setenv("FAKE_NVRTC_MS", "1", 1);
    const ConvSpec first = new_spec();
    compile(first, parse_target("sm_90a"));
    std::atomic<bool> stop{false};
    std::atomic<int> failures{0};
    std::vector<std::thread> compiling, forking;
    for (int i = 0; i < 3; ++i) {
      compiling.emplace_back([&] {
        while (!stop) compile(new_spec(), parse_target("sm_90a"));
      });
      forking.emplace_back([&] {
        for (int turn = 0; turn < 20 && failures == 0; ++turn) {
          const pid_t child = fork();
          if (child == 0) {
            alarm(5);
            statistics();  // takes no lock that a thread of the parent may have held
            std::exit(0);
          }
          int status = 1;
          waitpid(child, &status, 0);
          failures += status != 0;
        }
      });
    }
    for (std::thread& thread : forking) thread.join();
    stop = true;
    for (std::thread& thread : compiling) thread.join();
    std::_Exit(failures == 0 ? 0 : 1);
  };
  EXPECT_EXIT(fork_everywhere(), testing::ExitedWithCode(0), "^$");
}

TEST_F(ProcessEndDeathTest, NoLibraryIsLoadedOnceExitWaits) {
  const auto load_late = [] {
    std::atexit([] {
      try {
        const runtime::LibraryLoading loading;
        std::_Exit(10);
      } catch (const CompileError& error) {
        std::_Exit(error.code() == ErrorCode::compile_failed ? 11 : 1);
      }
    });
    { const runtime::CompilerUse use; }  // its exit handler comes before the one above
    std::exit(0);
  };
  EXPECT_EXIT(load_late(), testing::ExitedWithCode(11), "^$");
}

/// Compiles when it is destroyed, and ends the process with the outcome.
struct CompilesAtTheEnd {
  explicit CompilesAtTheEnd(ConvSpec the_spec) : spec(std::move(the_spec)) {}
  ~CompilesAtTheEnd() {
    try {
      compile(spec, parse_target("sm_90a"));
      std::_Exit(10);
    } catch (const CompileError& error) {
      const bool says_why = std::string(error.what()).find("the process is exiting") != std::string::npos;
      std::_Exit(error.code() == ErrorCode::compile_failed && says_why ? 11 : 1);
    }
  }
  ConvSpec spec;
};

TEST_F(ProcessEndDeathTest, AStaticObjectFromBeforeTheCompilerGetsAnError) {
  const auto compile_late = [] {
    static const CompilesAtTheEnd object(new_spec());
    compile(new_spec(), parse_target("sm_90a"));
    std::exit(0);
  };
  EXPECT_EXIT(compile_late(), testing::ExitedWithCode(11), "^$");
}

TEST_F(ProcessEndDeathTest, AStaticObjectFromAfterTheCompilerCompiles) {
  const auto compile_late = [] {
    compile(new_spec(), parse_target("sm_90a"));
    static const CompilesAtTheEnd object(new_spec());
    std::exit(0);
  };
  EXPECT_EXIT(compile_late(), testing::ExitedWithCode(10), "^$");
}

TEST_F(ProcessEndDeathTest, AStaticObjectMayBeTheFirstToCompile) {
  const auto compile_late = [] {
    static const CompilesAtTheEnd object(new_spec());
    std::exit(0);
  };
  EXPECT_EXIT(compile_late(), testing::ExitedWithCode(10), "^$");
}

}  // namespace
}  // namespace jitconv::runtime_test
