// Loading and saving: hits, misses, damaged files, modes, and disks that fail. Whatever happens, the caller gets its
// own bytes or none.
#include "cache/store.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "unit/cache/cache_test_support.h"

namespace jitconv::cache {
namespace {

class StoreTest : public ::testing::Test {
 protected:
  StoreConfig config(Mode mode = Mode::read_write) const { return {root_, mode, std::uint64_t{64} << 20}; }
  Store open(Mode mode = Mode::read_write) { return Store(config(mode), warnings_.collector()); }

  ScratchDirectory scratch_;
  std::string root_ = scratch_ / "parent/cache";
  Warnings warnings_;
};

TEST_F(StoreTest, AColdCacheMissesAndCreatesNothing) {
  Store store = open();
  EXPECT_EQ(store.load(key_of(1)), std::nullopt);
  EXPECT_EQ(store.statistics().misses, 1u);
  EXPECT_EQ(store.statistics().errors, 0u);
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "parent"));
  EXPECT_TRUE(warnings_.all().empty());
}

TEST_F(StoreTest, WhatIsSavedIsLoadedByAnyStore) {
  const Entry entry = entry_of(1, 50'000);
  Store writer = open();
  EXPECT_TRUE(writer.save(entry));
  EXPECT_EQ(writer.load(entry.key), entry);
  Store reader = open();
  EXPECT_EQ(reader.load(entry.key), entry);
  EXPECT_EQ(reader.load(key_of(2)), std::nullopt);
  EXPECT_EQ(writer.statistics().stored, 1u);
  EXPECT_EQ(reader.statistics().hits, 1u);
  EXPECT_EQ(reader.statistics().misses, 1u);
  EXPECT_TRUE(warnings_.all().empty());
}

TEST_F(StoreTest, FilesAndDirectoriesArePrivateAndNamedAsDocumented) {
  const mode_t old = umask(0);
  ASSERT_TRUE(open().save(entry_of(1)));
  umask(old);
  const std::string path = entry_path(root_, key_of(1));
  EXPECT_EQ(read_file(path), encode(entry_of(1)));
  for (auto folder = std::filesystem::path(path).parent_path(); folder != scratch_.path();
       folder = folder.parent_path()) {
    struct stat status {};
    ASSERT_EQ(stat(folder.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, 0700u) << folder;
  }
  struct stat status {};
  ASSERT_EQ(stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
  EXPECT_EQ(snapshot(root_).size(), 3u) << "two directories and the entry, no temporary file";
}

TEST_F(StoreTest, SavingAgainReplaces) {
  Store store = open();
  Entry entry = entry_of(1);
  EXPECT_TRUE(store.save(entry));
  entry.payload = "newer";
  EXPECT_TRUE(store.save(entry));
  EXPECT_EQ(store.load(entry.key), entry);
}

// Every damage is a miss, is counted, and ends with the file gone and a save making it whole again.
TEST_F(StoreTest, DamagedEntriesAreRemovedAndRewritten) {
  const Entry entry = entry_of(1);
  const std::string good = encode(entry), path = entry_path(root_, entry.key);
  std::string flipped = good;
  flipped[200] = static_cast<char>(flipped[200] ^ 4);
  std::string huge = good;
  huge[71] = 0x10;
  const std::string damages[] = {"",
                                 "x",
                                 good.substr(0, 71),
                                 good.substr(0, good.size() - 1),
                                 flipped,
                                 huge,
                                 good + "x",
                                 std::string(good.size(), '\0'),
                                 encode(entry_of(2))};
  Store store = open();
  std::uint64_t corrupt = 0;
  for (const std::string& damage : damages) {
    ASSERT_TRUE(store.save(entry));
    write_file(path, damage);
    EXPECT_EQ(store.load(entry.key), std::nullopt) << damage.size();
    EXPECT_EQ(store.statistics().corrupt, ++corrupt);
    EXPECT_FALSE(std::filesystem::exists(path)) << damage.size();
    ASSERT_TRUE(store.save(entry));
    EXPECT_EQ(store.load(entry.key), entry);
  }
  ASSERT_EQ(warnings_.all().size(), 1u) << "said once";
  EXPECT_NE(warnings_.all()[0].find(entry.key.hex()), std::string::npos);
}

TEST_F(StoreTest, SwappedEntriesMiss) {
  Store store = open();
  ASSERT_TRUE(store.save(entry_of(1)) && store.save(entry_of(2)));
  const std::string one = entry_path(root_, key_of(1)), two = entry_path(root_, key_of(2));
  std::filesystem::rename(one, scratch_ / "aside");
  std::filesystem::rename(two, one);
  std::filesystem::rename(scratch_ / "aside", two);
  EXPECT_EQ(store.load(key_of(1)), std::nullopt);
  EXPECT_EQ(store.load(key_of(2)), std::nullopt);
  EXPECT_EQ(store.statistics().corrupt, 2u);
}

// A sparse file costs its writer nothing, so its size alone must not make us allocate.
TEST_F(StoreTest, AHugeSparseFileIsRefusedByItsHeader) {
  Store store = open();
  ASSERT_TRUE(store.save(entry_of(1)));
  const std::string path = entry_path(root_, key_of(1));
  ASSERT_EQ(truncate(path.c_str(), std::int64_t{1} << 40), 0);
  run_in_child([&] {
    const struct rlimit little = {std::uint64_t{1} << 30, std::uint64_t{1} << 30};
    // Under a sanitizer the address space is already larger than this.
    if (getenv("JITCONV_TEST_NO_MEMORY_LIMIT") == nullptr) static_cast<void>(setrlimit(RLIMIT_DATA, &little));
    EXPECT_EQ(store.load(key_of(1)), std::nullopt);
    EXPECT_EQ(store.statistics().corrupt, 1u);
  });
}

TEST_F(StoreTest, AVanishedCacheIsCreatedAgainSilently) {
  Store store = open();
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(store.save(entry_of(1)));
    ASSERT_TRUE(store.load(key_of(1)).has_value());
    const std::string victims[] = {entry_path(root_, key_of(1)).substr(0, root_.size() + 6), root_ + kSchemaFolder,
                                   scratch_ / "parent"};
    std::filesystem::remove_all(victims[round]);
    EXPECT_EQ(store.load(key_of(1)), std::nullopt);
    EXPECT_TRUE(store.save(entry_of(2)));
    EXPECT_EQ(store.load(key_of(2)), entry_of(2));
  }
  EXPECT_EQ(store.statistics().errors, 0u);
  EXPECT_TRUE(warnings_.all().empty());
}

TEST_F(StoreTest, ReadOnlyNeverWrites) {
  ASSERT_TRUE(open().save(entry_of(1)) && open().save(entry_of(2)));
  set_age(entry_path(root_, key_of(1)), std::chrono::hours(100));
  write_file(entry_path(root_, key_of(2)), "damaged");
  const std::string stale =
      std::filesystem::path(entry_path(root_, key_of(1))).parent_path() / "tmp-1-0123456789abcdef";
  write_file(stale, "x");
  set_age(stale, std::chrono::hours(2));
  const auto before = snapshot(root_);

  Store store = open(Mode::read_only);
  EXPECT_EQ(store.load(key_of(1)), entry_of(1));
  EXPECT_EQ(store.load(key_of(2)), std::nullopt);
  EXPECT_FALSE(store.save(entry_of(3)));
  EXPECT_EQ(store.prune(0).bytes, 0u);
  EXPECT_EQ(store.clear().bytes, 0u);
  EXPECT_EQ(store.list().size(), 2u);
  EXPECT_EQ(store.verify().size(), 2u);
  EXPECT_EQ(snapshot(root_), before);
  EXPECT_EQ(store.statistics().stored, 0u);
}

TEST_F(StoreTest, ReadOnlyDoesNotCreateTheCache) {
  Store store = open(Mode::read_only);
  EXPECT_EQ(store.load(key_of(1)), std::nullopt);
  EXPECT_FALSE(store.save(entry_of(1)));
  EXPECT_FALSE(std::filesystem::exists(scratch_ / "parent"));
}

TEST_F(StoreTest, OffDoesNothingAtAll) {
  ASSERT_TRUE(open().save(entry_of(1)));
  const auto before = snapshot(scratch_.path());
  Store store = open(Mode::off);
  EXPECT_EQ(store.load(key_of(1)), std::nullopt);
  EXPECT_FALSE(store.save(entry_of(2)));
  EXPECT_TRUE(store.list().empty());
  EXPECT_EQ(store.clear().bytes, 0u);
  EXPECT_EQ(store.statistics().misses, 0u);
  EXPECT_EQ(snapshot(scratch_.path()), before);
  Store nowhere({"", Mode::off, 1}, warnings_.collector());
  EXPECT_EQ(nowhere.load(key_of(1)), std::nullopt);
  EXPECT_TRUE(warnings_.all().empty());
}

TEST_F(StoreTest, AnEntryLargerThanTheCacheIsNotStored) {
  Store store({root_, Mode::read_write, 1000}, warnings_.collector());
  EXPECT_FALSE(store.save(entry_of(1, 1000)));
  EXPECT_TRUE(store.save(entry_of(1, 500)));
  EXPECT_TRUE(warnings_.all().empty());
}

TEST_F(StoreTest, AReadOnlyDirectoryStillServesHits) {
  ASSERT_EQ(chmod(scratch_.path().c_str(), 0755), 0);
  ASSERT_EQ(mkdir((scratch_ / "parent").c_str(), 0755), 0);
  ASSERT_EQ(mkdir(root_.c_str(), 0700), 0);
  if (geteuid() == 0) {
    ASSERT_EQ(chown(root_.c_str(), kOtherUser, kOtherUser), 0);
  }
  run_in_child([&] {
    become_other_user();
    ASSERT_TRUE(open().save(entry_of(1)));
    const std::string folder = std::filesystem::path(entry_path(root_, key_of(1))).parent_path();
    for (const std::string& path : {folder, root_ + kSchemaFolder, root_}) ASSERT_EQ(chmod(path.c_str(), 0500), 0);
    Warnings warnings;
    Store store(config(), warnings.collector());
    EXPECT_EQ(store.load(key_of(1)), entry_of(1));
    EXPECT_FALSE(store.save(entry_of(1)));
    EXPECT_FALSE(store.save(entry_of(2)));
    EXPECT_EQ(store.load(key_of(1)), entry_of(1));
    EXPECT_EQ(store.statistics().errors, 2u);
    EXPECT_EQ(warnings.all().size(), 1u);
    for (const std::string& path : {root_, root_ + kSchemaFolder, folder}) ASSERT_EQ(chmod(path.c_str(), 0700), 0);
  });
}

TEST_F(StoreTest, AParentThatMayNotBeWrittenTurnsTheStoreOff) {
  ASSERT_EQ(chmod(scratch_.path().c_str(), 0555), 0);
  run_in_child([&] {
    become_other_user();
    Store store(config(), warnings_.collector());
    EXPECT_EQ(store.load(key_of(1)), std::nullopt);
    EXPECT_FALSE(store.save(entry_of(1)));
    EXPECT_FALSE(store.save(entry_of(1)));
    EXPECT_EQ(warnings_.all().size(), 1u);
    EXPECT_EQ(store.statistics().errors, 1u) << "off after the first attempt";
  });
  ASSERT_EQ(chmod(scratch_.path().c_str(), 0700), 0);
}

/// Mounts a file system that only this child sees.
bool mount_tmpfs(const std::string& path, const char* options) {
  return unshare(CLONE_NEWNS) == 0 && mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("tmpfs", path.c_str(), "tmpfs", 0, options) == 0;
}

TEST_F(StoreTest, AFullDiskDropsTheEntryAndLeavesNothing) {
  const bool ran = run_in_child([&] {
    if (!mount_tmpfs(scratch_.path(), "size=64k,mode=0700")) _exit(kChildSkipped);
    Store store(config(), warnings_.collector());
    ASSERT_TRUE(store.save(entry_of(1, 20'000)));
    for (int round = 0; round < 3; ++round) EXPECT_FALSE(store.save(entry_of(2, 200'000)));
    EXPECT_EQ(store.load(key_of(1)), entry_of(1, 20'000));
    EXPECT_EQ(store.load(key_of(2)), std::nullopt);
    EXPECT_EQ(store.statistics().errors, 3u);
    EXPECT_EQ(store.statistics().corrupt, 0u);
    ASSERT_EQ(warnings_.all().size(), 1u);
    EXPECT_NE(warnings_.all()[0].find("No space left"), std::string::npos) << warnings_.all()[0];
    for (const auto& [path, text] : snapshot(root_)) EXPECT_EQ(path.find("tmp-"), std::string::npos) << path;
    // Room again: the same store goes on.
    EXPECT_TRUE(store.save(entry_of(3, 20'000)));
  });
  if (!ran) GTEST_SKIP() << "not allowed to mount a file system";
}

TEST_F(StoreTest, ADiskWithoutInodesDropsTheEntry) {
  const bool ran = run_in_child([&] {
    if (!mount_tmpfs(scratch_.path(), "nr_inodes=6,mode=0700")) _exit(kChildSkipped);
    Store store(config(), warnings_.collector());
    std::uint64_t saved = 0;
    for (std::uint64_t i = 0; i < 10; ++i) saved += store.save(entry_of(i)) ? 1 : 0;
    EXPECT_LT(saved, 3u);
    EXPECT_EQ(store.statistics().errors, 10 - saved);
    EXPECT_EQ(warnings_.all().size(), 1u);
  });
  if (!ran) GTEST_SKIP() << "not allowed to mount a file system";
}

TEST_F(StoreTest, ALimitOnFileSizesDropsTheEntryInsteadOfKillingTheProcess) {
  run_in_child([&] {
    const struct rlimit limit = {4096, 4096};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    Store store(config(), warnings_.collector());
    EXPECT_FALSE(store.save(entry_of(1, 20'000)));
    EXPECT_TRUE(store.save(entry_of(2, 1000)));
    EXPECT_EQ(store.statistics().errors, 1u);
  });
}

TEST_F(StoreTest, RunningOutOfDescriptorsIsAMissThatPasses) {
  run_in_child([&] {
    Store store(config(), warnings_.collector());
    ASSERT_TRUE(store.save(entry_of(1)));
    struct rlimit limit {};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    // From no free descriptor to just too few for one operation.
    const int first_free = dup(0);
    close(first_free);
    for (int spare = 0; spare < 3; ++spare) {
      const struct rlimit few = {static_cast<rlim_t>(first_free + spare), limit.rlim_max};
      ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
      EXPECT_EQ(store.load(key_of(1)), std::nullopt) << spare;
      EXPECT_FALSE(store.save(entry_of(2))) << spare;
    }
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    EXPECT_EQ(store.load(key_of(1)), entry_of(1));
    EXPECT_EQ(warnings_.all().size(), 1u);
  });
}

TEST_F(StoreTest, NoDescriptorIsLeftOpen) {
  const auto open_descriptors = [] {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& item : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
    return count;
  };
  Store store({root_, Mode::read_write, 20'000}, warnings_.collector());
  const std::size_t before = open_descriptors();
  for (std::uint64_t i = 0; i < 30; ++i) {
    store.save(entry_of(i));
    store.load(key_of(i));
    store.load(key_of(i + 1000));
    write_file(entry_path(root_, key_of(i)), "damaged");
    store.load(key_of(i));
    store.verify();
  }
  EXPECT_EQ(open_descriptors(), before);
}

}  // namespace
}  // namespace jitconv::cache
