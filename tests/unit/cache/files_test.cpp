// The POSIX layer where the store's tests cannot aim well enough: files that change between two calls.
#include "cache/files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <set>
#include <string>

#include "cache/scan.h"
#include "unit/cache/cache_test_support.h"

namespace jitconv::cache {
namespace {

class Files : public ::testing::Test {
 protected:
  Files() : directory_(std::get<FileDescriptor>(open_root(scratch_.path(), Access::read))) {}

  OpenFile open(const std::string& name) { return std::get<OpenFile>(open_file(directory_, name)); }

  bool removes(const std::string& name, const FileIdentity& identity) {
    return std::get<bool>(remove_unchanged(directory_, name, identity));
  }

  ScratchDirectory scratch_;
  FileDescriptor directory_;
};

TEST_F(Files, OnlyTheVersionThatWasSeenIsRemoved) {
  write_file(scratch_ / "file", "first");
  const FileIdentity first = open("file").identity;
  ASSERT_EQ(publish_file(directory_, "temporary", "file", "other"), std::nullopt);
  EXPECT_FALSE(removes("file", first)) << "another inode";

  const FileIdentity second = open("file").identity;
  write_file(scratch_ / "file", "longer than before");
  set_age(scratch_ / "file", std::chrono::seconds(0));
  EXPECT_FALSE(removes("file", second)) << "another size";

  const FileIdentity third = open("file").identity;
  set_age(scratch_ / "file", std::chrono::seconds(5));
  EXPECT_FALSE(removes("file", third)) << "another time";
  EXPECT_EQ(read_file(scratch_ / "file"), "longer than before");

  EXPECT_TRUE(removes("file", open("file").identity));
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "file"));
  const auto absent = remove_unchanged(directory_, "file", third);
  EXPECT_EQ(std::get<Problem>(absent).kind, Problem::Kind::absent);
}

TEST_F(Files, WhatTheSystemDoesNotRemoveIsAProblem) {
  ASSERT_EQ(mkdir((scratch_ / "folder").c_str(), 0700), 0);
  const auto status = std::get<FileStatus>(examine(directory_, "folder"));
  EXPECT_FALSE(status.regular);
  const auto problem = std::get<Problem>(remove_unchanged(directory_, "folder", status.identity));
  EXPECT_EQ(problem.kind, Problem::Kind::failed);
  EXPECT_EQ(problem.text.find("cannot remove folder: "), 0u) << problem.text;
}

TEST_F(Files, AFileThatShrinksWhileItIsReadIsAProblem) {
  write_file(scratch_ / "file", std::string(100, 'x'));
  const OpenFile file = open("file");
  ASSERT_EQ(truncate((scratch_ / "file").c_str(), 50), 0);
  char buffer[100];
  const auto problem = read_exactly(file.file, buffer, sizeof buffer);
  ASSERT_TRUE(problem.has_value());
  EXPECT_EQ(problem->kind, Problem::Kind::failed);
}

TEST_F(Files, PublishingNeverOverwritesATemporaryFileOfAnother) {
  write_file(scratch_ / "temporary", "somebody is writing this");
  const auto problem = publish_file(directory_, "temporary", "file", "mine");
  ASSERT_TRUE(problem.has_value());
  EXPECT_EQ(problem->error, EEXIST);
  EXPECT_EQ(read_file(scratch_ / "temporary"), "somebody is writing this");
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "file"));

  ASSERT_EQ(unlink((scratch_ / "temporary").c_str()), 0);
  ASSERT_EQ(symlink((scratch_ / "victim").c_str(), (scratch_ / "temporary").c_str()), 0);
  EXPECT_TRUE(publish_file(directory_, "temporary", "file", "mine").has_value());
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "victim"));
}

TEST_F(Files, PublishingReplacesALinkAndNotWhatItLeadsTo) {
  write_file(scratch_ / "victim", "precious");
  ASSERT_EQ(symlink("victim", (scratch_ / "file").c_str()), 0);
  ASSERT_EQ(link((scratch_ / "victim").c_str(), (scratch_ / "hard").c_str()), 0);
  for (const char* name : {"file", "hard"}) {
    ASSERT_EQ(publish_file(directory_, temporary_name(), name, "mine"), std::nullopt);
    EXPECT_EQ(read_file(scratch_ / name), "mine");
    EXPECT_FALSE(std::filesystem::is_symlink(scratch_ / name));
  }
  EXPECT_EQ(read_file(scratch_ / "victim"), "precious");
}

TEST_F(Files, AFileIsItsOwnersUnlessOthersMayReadIt) {
  const mode_t before = umask(027);
  EXPECT_EQ(publish_file(directory_, temporary_name(), "private", "x"), std::nullopt);
  EXPECT_EQ(publish_file(directory_, temporary_name(), "public", "x", Readers::by_umask), std::nullopt);
  umask(before);
  struct stat status {};
  ASSERT_EQ(stat((scratch_ / "private").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  ASSERT_EQ(stat((scratch_ / "public").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640u);
}

TEST_F(Files, DescriptorsAreNotInheritedByOtherPrograms) {
  write_file(scratch_ / "file", "x");
  const OpenFile file = open("file");
  for (const int descriptor : {directory_.get(), file.file.get()}) {
    EXPECT_NE(fcntl(descriptor, F_GETFD) & FD_CLOEXEC, 0);
  }
}

TEST_F(Files, TimesFarAwayDoNotOverflow) {
  write_file(scratch_ / "file", "x");
  for (const std::int64_t seconds : {std::int64_t{-1'000'000'000'000}, std::int64_t{1'000'000'000'000}}) {
    const struct timespec times[2] = {{seconds, 0}, {seconds, 999'999'999}};
    if (utimensat(AT_FDCWD, (scratch_ / "file").c_str(), times, 0) != 0) continue;
    const std::int64_t modified = open("file").identity.modified_ns;
    EXPECT_GE(modified, 0);
    EXPECT_LT(modified, 9'100'000'000'000'000'000);
  }
}

TEST(TemporaryName, DoesNotRepeat) {
  std::set<std::string> names;
  for (int i = 0; i < 10'000; ++i) EXPECT_TRUE(names.insert(temporary_name()).second);
}

}  // namespace
}  // namespace jitconv::cache
