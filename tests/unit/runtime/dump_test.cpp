// JITCONV_DUMP_DIR in directories that others can write to: nothing is written through a link, and nothing but the
// dumped file changes. That the right bytes are dumped is shown in compile_test.cpp.
#include "runtime/dump.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "runtime_test_support.h"

namespace jitconv::runtime_test {
namespace {

namespace fs = std::filesystem;

class DumpTest : public testing::Test {
 protected:
  DumpTest() {
    source_.entries.emplace_back().name = "kernel";
    fs::create_directory(folder_);
    fs::permissions(folder_, fs::perms::all);
    std::ofstream(victim_) << "precious";
  }

  void dump_into(const std::string& folder, const std::string& bytes = "__global__") {
    const ScopedVariable variable("JITCONV_DUMP_DIR", folder);
    runtime::dump(source_, key_, ".cu", bytes);
  }

  /// What is warned of when `folder` is chosen; a process of its own, since a process warns once.
  void expect_refused(const std::string& folder, const std::string& reason) {
    const auto dump_twice = [&] {
      setenv("JITCONV_LOG", "warn", 1);
      dump_into(folder);
      dump_into(folder);
      _exit(0);
    };
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(dump_twice(), testing::ExitedWithCode(0),
                "warning: cannot write .*kernel_00000000.cu .JITCONV_DUMP_DIR.: " + reason + "\n$");
  }

  static std::string contents(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  static std::ptrdiff_t files_in(const std::string& folder) {
    return std::distance(fs::directory_iterator(folder), fs::directory_iterator());
  }

  TemporaryDirectory scratch_;
  const std::string folder_ = scratch_.path() + "/dumps", victim_ = scratch_.path() + "/victim";
  const std::string file_ = folder_ + "/kernel_00000000.cu";
  const cache::Key key_{};
  codegen::KernelSource source_;
};

TEST_F(DumpTest, ALinkUnderTheFilesNameIsReplacedAndNotFollowed) {
  fs::create_symlink(victim_, file_);
  dump_into(folder_);
  EXPECT_EQ(contents(victim_), "precious");
  EXPECT_FALSE(fs::is_symlink(file_));
  EXPECT_EQ(contents(file_), "__global__");

  fs::remove(file_);
  fs::create_hard_link(victim_, file_);
  dump_into(folder_);
  EXPECT_EQ(contents(victim_), "precious");
  EXPECT_EQ(contents(file_), "__global__");
  EXPECT_EQ(files_in(folder_), 1);
}

TEST_F(DumpTest, ADirectoryThatIsALinkIsRefused) {
  const std::string link = scratch_.path() + "/link";
  fs::create_directory_symlink(folder_, link);
  expect_refused(link, ".*/link is not a directory, or is a symbolic link");
  expect_refused(link + "/./", ".*/link is not a directory, or is a symbolic link");
  EXPECT_EQ(files_in(folder_), 0);
}

TEST_F(DumpTest, WhatIsInTheWayIsNamed) {
  fs::create_directory(file_);
  expect_refused(folder_, "cannot rename tmp-[0-9a-f-]+: Is a directory");
  EXPECT_EQ(files_in(folder_), 1) << "no temporary file is left";
  expect_refused(victim_, ".*/victim is not a directory, or is a symbolic link");
  expect_refused("/proc/none/here", "there is no such directory");
}

TEST_F(DumpTest, FilesAreForWhomTheUmaskSays) {
  const mode_t before = umask(027);
  dump_into(folder_ + "/made/here");
  umask(before);
  struct stat status {};
  ASSERT_EQ(stat((folder_ + "/made/here/kernel_00000000.cu").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640u);
  ASSERT_EQ(stat((folder_ + "/made").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0750u);
}

TEST_F(DumpTest, ARelativeDirectoryIsTheWorkingDirectorys) {
  const fs::path before = fs::current_path();
  fs::current_path(scratch_.path());
  dump_into("here/below");
  fs::current_path(before);
  EXPECT_EQ(contents(scratch_.path() + "/here/below/kernel_00000000.cu"), "__global__");
}

TEST_F(DumpTest, AWorkingDirectoryThatIsGoneIsNoTrap) {
  const fs::path before = fs::current_path();
  fs::create_directory(scratch_.path() + "/gone");
  fs::current_path(scratch_.path() + "/gone");
  fs::remove(scratch_.path() + "/gone");
  dump_into("here");
  fs::current_path(before);
  EXPECT_FALSE(fs::exists(scratch_.path() + "/gone"));
}

// Past the limit the kernel kills the process instead of failing the write.
TEST_F(DumpTest, ALimitOnFileSizesCostsTheFileOnly) {
  const auto dump_too_much = [&] {
    setenv("JITCONV_LOG", "warn", 1);
    const struct rlimit limit { 4096, 4096 };
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(2);
    dump_into(folder_, std::string(5000, 'x'));
    _exit(0);
  };
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(dump_too_much(), testing::ExitedWithCode(0), "cannot write tmp-.*: File too large");
  EXPECT_EQ(files_in(folder_), 0);
}

}  // namespace
}  // namespace jitconv::runtime_test
