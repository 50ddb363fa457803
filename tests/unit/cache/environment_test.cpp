// What the environment variables mean, and that a privileged program does not listen to them.
#include <gtest/gtest.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "cache/store.h"
#include "unit/cache/cache_test_support.h"

namespace jitconv::cache {
namespace {

class Environment : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"JITCONV_CACHE_DIR", "JITCONV_CACHE", "JITCONV_CACHE_MAXSIZE", "XDG_CACHE_HOME"}) {
      unsetenv(name);
    }
    set("HOME", "/home/somebody");
  }
  static void set(const char* name, const std::string& value) { setenv(name, value.c_str(), 1); }
  StoreConfig config() { return store_config_from_environment(warnings_.collector()); }

  /// Off, with one warning that shows the text.
  void expect_off(const std::string& text) {
    const std::size_t before = warnings_.all().size();
    const StoreConfig off = config();
    EXPECT_EQ(off.mode, Mode::off) << text;
    EXPECT_EQ(off.root, "") << text;
    ASSERT_EQ(warnings_.all().size(), before + 1) << text;
    EXPECT_NE(warnings_.all().back().find(text), std::string::npos) << warnings_.all().back();
  }

  Warnings warnings_;
};

TEST_F(Environment, TheDirectoryComesFromTheMostSpecificVariable) {
  EXPECT_EQ(config().root, "/home/somebody/.cache/jitconv");
  set("XDG_CACHE_HOME", "/var/xdg");
  EXPECT_EQ(config().root, "/var/xdg/jitconv");
  set("JITCONV_CACHE_DIR", "/var/mine");
  EXPECT_EQ(config().root, "/var/mine");
  EXPECT_EQ(config().mode, Mode::read_write);
  EXPECT_EQ(config().max_bytes, std::uint64_t{1} << 30);
  EXPECT_TRUE(warnings_.all().empty());
}

TEST_F(Environment, EmptyValuesCountAsUnset) {
  for (const char* name : {"JITCONV_CACHE_DIR", "JITCONV_CACHE", "JITCONV_CACHE_MAXSIZE", "XDG_CACHE_HOME"}) {
    set(name, "");
  }
  EXPECT_EQ(config().root, "/home/somebody/.cache/jitconv");
  EXPECT_EQ(config().mode, Mode::read_write);
  EXPECT_TRUE(warnings_.all().empty());
}

TEST_F(Environment, ARelativeXdgDirectoryIsIgnored) {
  set("XDG_CACHE_HOME", "xdg");
  EXPECT_EQ(config().root, "/home/somebody/.cache/jitconv");
}

TEST_F(Environment, WithoutAnyDirectoryTheCacheIsOff) {
  unsetenv("HOME");
  expect_off("HOME");
  set("HOME", "relative");
  expect_off("HOME");
}

TEST_F(Environment, ARelativeDirectoryTurnsTheCacheOff) {
  for (const char* path : {"cache", "./cache", "../cache", "~/cache"}) {
    set("JITCONV_CACHE_DIR", path);
    expect_off(path);
  }
}

TEST_F(Environment, Modes) {
  set("JITCONV_CACHE", "rw");
  EXPECT_EQ(config().mode, Mode::read_write);
  set("JITCONV_CACHE", "ro");
  EXPECT_EQ(config().mode, Mode::read_only);
  set("JITCONV_CACHE", "off");
  EXPECT_EQ(config().mode, Mode::off);
  EXPECT_EQ(config().root, "");
  EXPECT_TRUE(warnings_.all().empty());
  for (const char* text : {"RW", "r", "1", "on", "true", " rw", "rw ", "0"}) {
    set("JITCONV_CACHE", text);
    expect_off(text);
  }
}

TEST_F(Environment, Sizes) {
  const std::pair<const char*, std::uint64_t> sizes[] = {{"1", 1},
                                                         {"4096", 4096},
                                                         {"64K", 65536},
                                                         {"200M", std::uint64_t{200} << 20},
                                                         {"16G", std::uint64_t{16} << 30},
                                                         {"0010", 10},
                                                         {"18446744073709551615", ~std::uint64_t{0}},
                                                         {"17179869183G", ~std::uint64_t{0} - ((1 << 30) - 1)}};
  for (const auto& [text, bytes] : sizes) {
    set("JITCONV_CACHE_MAXSIZE", text);
    EXPECT_EQ(config().max_bytes, bytes) << text;
    EXPECT_EQ(config().mode, Mode::read_write) << text;
  }
  EXPECT_TRUE(warnings_.all().empty());
  for (const char* text : {"0", "0G", "K", "-1", "+1", " 1", "1 ", "1k", "1GB", "1T", "1.5G", "0x10", "1e9", "big",
                           "18446744073709551616", "17179869184G", "99999999999999999999999"}) {
    set("JITCONV_CACHE_MAXSIZE", text);
    expect_off(std::string("'") + text + "'");
  }
}

TEST_F(Environment, NoWarningCallbackIsNeeded) {
  set("JITCONV_CACHE", "nonsense");
  EXPECT_EQ(store_config_from_environment({}).mode, Mode::off);
}

// Runs only in the set-uid copy that the next test makes.
TEST(SetUidCopy, DISABLED_IgnoresTheEnvironment) {
  if (getauxval(AT_SECURE) == 0) _exit(kChildSkipped);
  ASSERT_STREQ(getenv("JITCONV_CACHE_DIR"), "/tmp/planted");
  Warnings warnings;
  const StoreConfig config = store_config_from_environment(warnings.collector());
  EXPECT_EQ(config.mode, Mode::off);
  EXPECT_EQ(config.root, "");
  EXPECT_TRUE(warnings.all().empty());
  // Without the search for leaks that AddressSanitizer ends with: it traces, which a set-uid program does not allow.
  std::fflush(nullptr);
  _exit(HasFailure() ? 1 : 0);
}

TEST(SetUid, ProgramsIgnoreTheEnvironment) {
  if (geteuid() != 0) GTEST_SKIP() << "not root: cannot make a set-uid program of another user";
  const ScratchDirectory scratch;
  ASSERT_EQ(chmod(scratch.path().c_str(), 0755), 0);
  const std::string copy = scratch / "copy";
  std::filesystem::copy_file("/proc/self/exe", copy);
  ASSERT_EQ(chown(copy.c_str(), kOtherUser, kOtherUser), 0);
  ASSERT_EQ(chmod(copy.c_str(), 04755), 0);
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    setenv("JITCONV_CACHE_DIR", "/tmp/planted", 1);
    unsetenv("GTEST_OUTPUT");
    execl(copy.c_str(), copy.c_str(), "--gtest_also_run_disabled_tests", "--gtest_filter=SetUidCopy.*", nullptr);
    _exit(126);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kChildSkipped) GTEST_SKIP() << scratch.path() << " does not honour set-uid programs";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace jitconv::cache
