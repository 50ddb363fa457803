// Which directories and files the store refuses, because somebody else may have written them: a cache entry is code.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "cache/store.h"
#include "unit/cache/cache_test_support.h"

namespace jitconv::cache {
namespace {

class StoreTrust : public ::testing::Test {
 protected:
  void fill() {
    ASSERT_TRUE(Store({root_}, {}).save(entry_of(1)));
    ASSERT_EQ(Store({root_}, {}).load(key_of(1)), entry_of(1));
  }

  /// The store at `root` neither reads nor writes and says so once, whatever is called how often.
  void expect_off(const std::string& root, const std::string& text) {
    const auto before = snapshot(scratch_.path());
    Warnings warnings;
    Store store({root}, warnings.collector());
    for (int round = 0; round < 3; ++round) {
      EXPECT_EQ(store.load(key_of(1)), std::nullopt) << root;
      EXPECT_FALSE(store.save(entry_of(2))) << root;
      EXPECT_EQ(store.prune(0).bytes, 0u);
      EXPECT_EQ(store.clear().bytes, 0u);
      EXPECT_TRUE(store.verify().empty());
    }
    EXPECT_EQ(snapshot(scratch_.path()), before) << root;
    ASSERT_EQ(warnings.all().size(), 1u) << root;
    EXPECT_EQ(warnings.all()[0].find("disk cache is off: "), 0u);
    EXPECT_NE(warnings.all()[0].find(text), std::string::npos) << warnings.all()[0];
  }

  /// The file of entry 1 is not served, and a save brings it back.
  void expect_entry_refused(const std::string& text) {
    Warnings warnings;
    Store store({root_}, warnings.collector());
    EXPECT_EQ(store.load(key_of(1)), std::nullopt);
    EXPECT_EQ(store.load(key_of(1)), std::nullopt);
    EXPECT_EQ(store.statistics().errors, 2u);
    ASSERT_EQ(warnings.all().size(), 1u);
    EXPECT_NE(warnings.all()[0].find(text), std::string::npos) << warnings.all()[0];
    const auto reports = store.verify();
    ASSERT_EQ(reports.size(), 1u);
    EXPECT_NE(reports[0].problem.value_or("no problem").find(text), std::string::npos);
    EXPECT_TRUE(store.save(entry_of(1)));
    EXPECT_EQ(store.load(key_of(1)), entry_of(1));
  }

  ScratchDirectory scratch_;
  std::string root_ = scratch_ / "cache";
  std::string entry_ = entry_path(root_, key_of(1));
};

TEST_F(StoreTrust, RelativeAndEmptyRootsAreRefused) {
  ASSERT_EQ(chdir(scratch_.path().c_str()), 0);
  fill();
  for (const char* root : {"", "cache", "./cache", "../cache"}) expect_off(root, "not an absolute path");
  expect_off(std::string("/tmp\0/x", 7), "not an absolute path");
  ASSERT_EQ(chdir("/"), 0);
}

TEST_F(StoreTrust, AFileInPlaceOfTheRootIsRefused) {
  write_file(root_, "not a directory");
  expect_off(root_, "not a directory");
  expect_off(root_ + "/below", "not a directory");
  expect_off(root_ + "/far/below", "not a directory");
}

TEST_F(StoreTrust, ARootWithAnImpossibleNameIsRefused) {
  expect_off(scratch_ / std::string(300, 'x'), "File name too long");
  std::string deep = scratch_.path();
  while (deep.size() < 5000) deep += "/deeper";
  expect_off(deep, "File name too long");
}

TEST_F(StoreTrust, ASymbolicLinkInPlaceOfTheRootIsRefused) {
  fill();
  const std::string link = scratch_ / "link";
  ASSERT_EQ(symlink(root_.c_str(), link.c_str()), 0);
  for (const char* end : {"", "/", "//", "/.", "/./", "/.//./"}) expect_off(link + end, "symbolic link");
  ASSERT_EQ(symlink((scratch_ / "nowhere").c_str(), (scratch_ / "dangling").c_str()), 0);
  expect_off(scratch_ / "dangling", "symbolic link");
}

TEST_F(StoreTrust, ASymbolicLinkAboveTheRootIsFine) {
  ASSERT_EQ(mkdir((scratch_ / "real").c_str(), 0700), 0);
  ASSERT_EQ(symlink("real", (scratch_ / "link").c_str()), 0);
  Store store({scratch_ / "link/cache/"}, {});
  EXPECT_TRUE(store.save(entry_of(1)));
  EXPECT_EQ(Store({scratch_ / "real/cache"}, {}).load(key_of(1)), entry_of(1));
}

TEST_F(StoreTrust, ARootThatOthersMayWriteIsRefused) {
  fill();
  for (const mode_t mode : {0777u, 01777u, 0720u, 0702u, 0770u}) {
    ASSERT_EQ(chmod(root_.c_str(), mode), 0);
    expect_off(root_, "can be written by its group or by everybody");
  }
  for (const mode_t mode : {0700u, 0755u, 0711u}) {
    ASSERT_EQ(chmod(root_.c_str(), mode), 0);
    EXPECT_EQ(Store({root_}, {}).load(key_of(1)), entry_of(1)) << mode;
  }
}

TEST_F(StoreTrust, ARootOfAnotherUserIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "not root: cannot give files to another user";
  fill();
  ASSERT_EQ(chown(root_.c_str(), kOtherUser, kOtherUser), 0);
  expect_off(root_, "is owned by user 65534, not by user 0");
}

/// What `chmod -R a+rX` does.
void let_everybody_read(const std::string& directory) {
  ASSERT_EQ(chmod(directory.c_str(), 0755), 0);
  for (const auto& item : std::filesystem::recursive_directory_iterator(directory)) {
    ASSERT_EQ(chmod(item.path().c_str(), item.is_directory() ? 0755 : 0644), 0);
  }
}

class StoreOfRoot : public StoreTrust {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "not root: cannot fill a cache as root";
    fill();
    set_age(entry_, std::chrono::hours(48));
    let_everybody_read(scratch_.path());
  }
};

TEST_F(StoreOfRoot, IsReadByEverybodyAndWrittenByRootAlone) {
  const auto before = snapshot(scratch_.path());
  run_in_child([&] {
    become_other_user();
    Warnings warnings;
    Store store({root_}, warnings.collector());
    EXPECT_EQ(store.load(key_of(1)), entry_of(1));
    EXPECT_EQ(store.verify().size(), 1u);
    EXPECT_TRUE(warnings.all().empty());
    for (int round = 0; round < 3; ++round) {
      EXPECT_FALSE(store.save(entry_of(2)));
      EXPECT_EQ(store.clear().bytes, 0u);
      EXPECT_EQ(store.prune(0).bytes, 0u);
    }
    EXPECT_EQ(store.load(key_of(1)), entry_of(1)) << "it goes on being read";
    ASSERT_EQ(warnings.all().size(), 1u);
    EXPECT_NE(warnings.all()[0].find(root_ + " belongs to root: its entries are used, none is stored or removed"),
              std::string::npos)
        << warnings.all()[0];
    EXPECT_EQ(store.statistics().errors, 1u);
  });
  EXPECT_EQ(snapshot(scratch_.path()), before);
}

TEST_F(StoreOfRoot, NeedsNoWarningWhereReadOnlyIsIntended) {
  run_in_child([&] {
    become_other_user();
    Warnings warnings;
    Store store({root_, Mode::read_only}, warnings.collector());
    EXPECT_EQ(store.load(key_of(1)), entry_of(1));
    EXPECT_FALSE(store.save(entry_of(2)));
    EXPECT_TRUE(warnings.all().empty());
    EXPECT_EQ(store.statistics().errors, 0u);
  });
}

TEST_F(StoreOfRoot, IsRefusedAsSoonAsOthersMayWriteToIt) {
  const std::string folder = std::filesystem::path(entry_).parent_path();
  for (const std::string& path : {root_, root_ + kSchemaFolder, folder, entry_}) {
    ASSERT_EQ(chmod(path.c_str(), 0775), 0);
    run_in_child([&] {
      become_other_user();
      Store store({root_}, [](const std::string&) {});
      EXPECT_EQ(store.load(key_of(1)), std::nullopt) << path;
    });
    ASSERT_EQ(chmod(path.c_str(), 0755), 0);
  }
}

TEST_F(StoreOfRoot, EntriesThatAThirdUserOwnsAreRefused) {
  ASSERT_EQ(chown(entry_.c_str(), kOtherUser - 1, kOtherUser - 1), 0);
  run_in_child([&] {
    become_other_user();
    Warnings warnings;
    EXPECT_EQ(Store({root_}, warnings.collector()).load(key_of(1)), std::nullopt);
    ASSERT_EQ(warnings.all().size(), 1u);
    EXPECT_NE(warnings.all()[0].find("is owned by user 65533, not by user 65534 or root"), std::string::npos)
        << warnings.all()[0];
  });
}

// A user's own cache into which root has stored something, as `sudo` without -H does.
TEST_F(StoreOfRoot, FilesOfRootInAUsersCacheAreReadAndLeftAlone) {
  ASSERT_EQ(chown(root_.c_str(), kOtherUser, kOtherUser), 0);
  run_in_child([&] {
    become_other_user();
    Warnings warnings;
    Store store({root_}, warnings.collector());
    EXPECT_EQ(store.load(key_of(1)), entry_of(1));
    EXPECT_GT(age_of(entry_), std::chrono::hours(47));
    EXPECT_FALSE(store.save(entry_of(2)));
    ASSERT_EQ(warnings.all().size(), 1u);
    EXPECT_NE(warnings.all()[0].find("v2 belongs to root"), std::string::npos) << warnings.all()[0];
    EXPECT_EQ(store.clear().left, 1u);
  });
}

TEST_F(StoreTrust, ARootThatTurnsBadLaterIsRefusedFromThenOn) {
  fill();
  Warnings warnings;
  Store store({root_}, warnings.collector());
  ASSERT_TRUE(store.load(key_of(1)).has_value());
  ASSERT_EQ(chmod(root_.c_str(), 0777), 0);
  EXPECT_EQ(store.load(key_of(1)), std::nullopt);
  ASSERT_EQ(chmod(root_.c_str(), 0700), 0);
  EXPECT_EQ(store.load(key_of(1)), std::nullopt) << "somebody had the chance to plant something";
  EXPECT_EQ(warnings.all().size(), 1u);
}

TEST_F(StoreTrust, DirectoriesBelowTheRootAreCheckedToo) {
  for (const std::string& folder : {root_ + kSchemaFolder, std::filesystem::path(entry_).parent_path().string()}) {
    fill();
    Store store({root_}, [](const std::string&) {});
    ASSERT_EQ(chmod(folder.c_str(), 0777), 0);
    EXPECT_EQ(store.load(key_of(1)), std::nullopt);
    EXPECT_FALSE(store.save(entry_of(1)));
    EXPECT_TRUE(store.verify().empty());
    ASSERT_EQ(chmod(folder.c_str(), 0700), 0);
    EXPECT_EQ(store.load(key_of(1)), entry_of(1));

    const std::string aside = scratch_ / "aside";
    std::filesystem::rename(folder, aside);
    ASSERT_EQ(symlink(aside.c_str(), folder.c_str()), 0);
    const auto before = snapshot(scratch_.path());
    EXPECT_EQ(store.load(key_of(1)), std::nullopt);
    EXPECT_FALSE(store.save(entry_of(1)));
    EXPECT_EQ(store.clear().bytes, 0u);
    EXPECT_EQ(snapshot(scratch_.path()), before);
    EXPECT_EQ(store.statistics().errors, 6u) << "load, save and verify, and load, save and clear";
    std::filesystem::remove(folder);
    std::filesystem::remove_all(aside);
  }
}

TEST_F(StoreTrust, ASymbolicLinkInPlaceOfAnEntryIsRefused) {
  fill();
  const std::string elsewhere = scratch_ / "elsewhere";
  std::filesystem::rename(entry_, elsewhere);
  ASSERT_EQ(symlink(elsewhere.c_str(), entry_.c_str()), 0);
  expect_entry_refused("is a symbolic link");
  EXPECT_EQ(read_file(elsewhere), encode(entry_of(1))) << "the save replaced the link, not what it names";
}

TEST_F(StoreTrust, AnEntryOfAnotherUserIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "not root: cannot give files to another user";
  fill();
  ASSERT_EQ(chown(entry_.c_str(), kOtherUser, kOtherUser), 0);
  expect_entry_refused("is owned by user 65534");
}

TEST_F(StoreTrust, AnEntryThatOthersMayWriteIsRefused) {
  fill();
  ASSERT_EQ(chmod(entry_.c_str(), 0606), 0);
  expect_entry_refused("can be written by");
}

// Opening a FIFO for reading waits for a writer unless one takes care.
TEST_F(StoreTrust, AFifoInPlaceOfAnEntryDoesNotHang) {
  fill();
  ASSERT_EQ(unlink(entry_.c_str()), 0);
  ASSERT_EQ(mkfifo(entry_.c_str(), 0600), 0);
  alarm(30);
  expect_entry_refused("is not a regular file");
  alarm(0);
}

TEST_F(StoreTrust, ASocketInPlaceOfAnEntryIsAMiss) {
  fill();
  ASSERT_EQ(unlink(entry_.c_str()), 0);
  ASSERT_EQ(chdir(std::filesystem::path(entry_).parent_path().c_str()), 0);
  const int socket_descriptor = socket(AF_UNIX, SOCK_STREAM, 0);
  struct sockaddr_un address {};
  address.sun_family = AF_UNIX;
  const std::string name = key_of(1).hex();
  name.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(bind(socket_descriptor, reinterpret_cast<const struct sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(chdir("/"), 0);
  Store store({root_}, [](const std::string&) {});
  EXPECT_EQ(store.load(key_of(1)), std::nullopt);
  EXPECT_TRUE(store.save(entry_of(1)));
  EXPECT_EQ(store.load(key_of(1)), entry_of(1));
  close(socket_descriptor);
}

TEST_F(StoreTrust, ADirectoryInPlaceOfAnEntryIsAMiss) {
  fill();
  ASSERT_EQ(unlink(entry_.c_str()), 0);
  ASSERT_EQ(mkdir(entry_.c_str(), 0700), 0);
  Warnings warnings;
  Store store({root_}, warnings.collector());
  EXPECT_EQ(store.load(key_of(1)), std::nullopt);
  EXPECT_FALSE(store.save(entry_of(1)));
  EXPECT_EQ(store.clear().bytes, 0u);
  EXPECT_TRUE(std::filesystem::is_directory(entry_));
  EXPECT_EQ(warnings.all().size(), 1u);
  EXPECT_EQ(snapshot(root_).size(), 3u) << "no temporary file is left";
}

}  // namespace
}  // namespace jitconv::cache
