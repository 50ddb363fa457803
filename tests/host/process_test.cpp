// Programs that are run and waited for: they end in time, and how they ended is told. They outlive neither their run
// nor the process that runs them.
#include "host/process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "host/surroundings.h"

namespace jitconv::test {
namespace {

using std::chrono::milliseconds;

host::Outcome run_shell(const std::string& text, milliseconds limit = std::chrono::seconds(10)) {
  return host::run({.arguments = {"/bin/sh", "-c", text}, .directory = {}, .limit = limit});
}

/// Zombies do not run: whether somebody waits for them is not our affair.
bool is_running(pid_t process) {
  std::ifstream stream("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  return std::getline(stream, text) && text.substr(text.rfind(')') + 2, 1) != "Z";
}

bool becomes_true(const std::function<bool()>& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return true;
}

pid_t number_in(const std::filesystem::path& file) {
  pid_t number = 0;
  std::ifstream(file) >> number;
  return number;
}

TEST(Process, TimesOutAndTakesItsChildrenAlong) {
  const auto begin = std::chrono::steady_clock::now();
  const host::Outcome outcome = run_shell("echo before; sleep 60 & sleep 60", milliseconds(200));
  EXPECT_EQ(outcome.end, host::Outcome::End::timed_out);
  EXPECT_EQ(outcome.output, "before\n");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST(Process, TellsExitSignalAndMissingPrograms) {
  EXPECT_EQ(run_shell("exit 3").code, 3);
  EXPECT_EQ(run_shell("exit 255").code, 255);
  EXPECT_EQ(run_shell("exit 255").end, host::Outcome::End::exited);
  const host::Outcome signalled = run_shell("kill -9 $$");
  EXPECT_EQ(signalled.end, host::Outcome::End::signalled);
  EXPECT_EQ(signalled.code, 9);
  const host::Outcome none = host::run({.arguments = {"/nonexistent"}, .directory = {}});
  EXPECT_EQ(none.end, host::Outcome::End::not_started);
  EXPECT_EQ(none.code, ENOENT);
}

TEST(Process, PassesArgumentsAsTheyAre) {
  const std::string odd = "a  b\n$HOME 'c' \"d\" `e` *";
  EXPECT_EQ(host::run({.arguments = {"/usr/bin/printf", "%s|%s|", odd, ""}, .directory = {}}).output, odd + "||");
}

TEST(Process, DoesNotWaitForWhatTheProgramLeftRunning) {
  const host::Outcome outcome = run_shell("sleep 60 & echo $!; exit 3");
  EXPECT_EQ(outcome.end, host::Outcome::End::exited);
  EXPECT_EQ(outcome.code, 3);
  const pid_t left = std::atoi(outcome.output.c_str());
  ASSERT_GT(left, 0);
  EXPECT_TRUE(becomes_true([&] { return !is_running(left); }));
}

TEST(Process, KeepsTheBeginningAndTheEndOfALongOutput) {
  const host::Outcome outcome =
      run_shell("echo first; i=0; while [ $i -lt 200 ]; do printf '%01000d%09000d' 0 0; i=$((i+1)); done; echo last");
  EXPECT_EQ(outcome.output.substr(0, 6), "first\n");
  EXPECT_EQ(outcome.output.substr(outcome.output.size() - 5), "last\n");
  EXPECT_LE(outcome.output.size(), host::kKeptOutput + 100);
  const std::size_t dropped = 2'000'000 + 11 - host::kKeptOutput;
  EXPECT_NE(outcome.output.find("\n[" + std::to_string(dropped) + " bytes left out]\n"), std::string::npos);
}

/// Whether a program gets its streams and the inherited file in a process that has closed the first `closed` streams.
bool runs_without_streams(int closed) {
  const pid_t child = fork();
  if (child == 0) {
    for (int stream = 0; stream < closed; ++stream) ::close(stream);
    const int file = ::memfd_create("held", 0);  // often under a closed stream's number
    const bool held = ::write(file, "held\n", 5) == 5 && ::lseek(file, 0, SEEK_SET) == 0;
    const host::Outcome outcome = host::run(
        {.arguments = {"/bin/sh", "-c", "cat; cat <&3; echo out; echo err >&2"}, .directory = {}, .inherited = file});
    _exit(held && outcome.output == "held\nout\nerr\n" ? 0 : 1);
  }
  int status = 0;
  return waitpid(child, &status, 0) == child && status == 0;
}

TEST(Process, NeedsNoStandardStreams) {
  for (const int closed : {0, 1, 2, 3}) EXPECT_TRUE(runs_without_streams(closed)) << closed;
}

/// Runs a program in a thread of a forked process, ends that process by `end`, and expects the program to end and its
/// folder to go.
void expect_nothing_left(const std::function<void(pid_t)>& end) {
  const Folder parent;
  const std::filesystem::path folder = parent.path() / "scratch", number = parent.path() / "number";
  std::filesystem::create_directory(folder);
  const pid_t child = fork();
  if (child == 0) {
    // A program that exits while a thread compiles.
    signal(SIGUSR1, [](int) { std::_Exit(0); });
    std::thread([&] {
      host::run({.arguments = {"/bin/sh", "-c", "echo x > file; sleep 60 & echo $! > ../number; wait"},
                 .directory = folder.string()});
    }).detach();
    for (;;) pause();
  }
  EXPECT_TRUE(becomes_true([&] { return number_in(number) > 0; }));
  const pid_t program = number_in(number);
  EXPECT_TRUE(is_running(program));
  end(child);
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(becomes_true([&] { return !is_running(program); }));
  EXPECT_TRUE(becomes_true([&] { return !std::filesystem::exists(folder); }));
}

TEST(Process, DiesWithTheProcessThatRunsIt) {
  for (const int ending : {SIGKILL, SIGINT, SIGTERM, SIGHUP, SIGUSR1}) {
    SCOPED_TRACE(strsignal(ending));
    expect_nothing_left([ending](pid_t process) { kill(process, ending); });
  }
}

}  // namespace
}  // namespace jitconv::test
