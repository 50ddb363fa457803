// Programs that are run and waited for: they end in time, and how they ended is told.
#include "host/process.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>

namespace jitconv::test {
namespace {

TEST(Process, TimesOutAndTakesItsChildrenAlong) {
  const auto begin = std::chrono::steady_clock::now();
  const host::Outcome outcome = host::run({.arguments = {"/bin/sh", "-c", "echo before; sleep 60 & sleep 60"},
                                           .directory = {},
                                           .limit = std::chrono::milliseconds(200)});
  EXPECT_EQ(outcome.end, host::Outcome::End::timed_out);
  EXPECT_EQ(outcome.output, "before\n");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(20));
}

TEST(Process, TellsExitSignalAndMissingPrograms) {
  EXPECT_EQ(host::run({.arguments = {"/bin/sh", "-c", "exit 3"}, .directory = {}}).code, 3);
  const host::Outcome signalled = host::run({.arguments = {"/bin/sh", "-c", "kill -9 $$"}, .directory = {}});
  EXPECT_EQ(signalled.end, host::Outcome::End::signalled);
  EXPECT_EQ(signalled.code, 9);
  const host::Outcome none = host::run({.arguments = {"/nonexistent"}, .directory = {}});
  EXPECT_EQ(none.end, host::Outcome::End::not_started);
  EXPECT_EQ(none.code, ENOENT);
}

}  // namespace
}  // namespace jitconv::test
