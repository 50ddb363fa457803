// Keeping the cache small: what is removed, in which order, when, and above all what is never touched.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "cache/store.h"
#include "unit/cache/cache_test_support.h"

namespace jitconv::cache {
namespace {

using std::chrono::hours;
using std::chrono::minutes;

class StoreUpkeep : public ::testing::Test {
 protected:
  std::string path(std::uint64_t number) const { return entry_path(root_, key_of(number)); }
  bool exists(std::uint64_t number) const { return std::filesystem::exists(path(number)); }
  std::uint64_t bytes() {
    std::uint64_t sum = 0;
    for (const FileReport& report : Store({root_}, {}).list()) sum += report.bytes;
    return sum;
  }

  ScratchDirectory scratch_{ScratchDirectory::Kind::memory};
  std::string root_ = scratch_ / "cache";
};

TEST_F(StoreUpkeep, PruneRemovesTheLeastRecentlyUsedFirst) {
  Store store({root_}, {});
  for (std::uint64_t i = 0; i < 10; ++i) {
    ASSERT_TRUE(store.save(entry_of(i)));
    // 7 is the oldest, then 4, 1, 8, 5, 2, 9, 6, 3, and 0 the youngest.
    set_age(path(i), hours(i * 7 % 10) * 10);
  }
  const std::uint64_t each = encoded_bytes(entry_of(0));
  EXPECT_EQ(store.prune(10 * each).bytes, 0u);
  EXPECT_EQ(store.statistics().evicted, 0u);
  EXPECT_EQ(store.prune(10 * each - 1).bytes, each);
  EXPECT_EQ(store.statistics().evicted, 1u);
  EXPECT_EQ(store.prune(4 * each).bytes, 5 * each);
  std::vector<std::uint64_t> left;
  for (std::uint64_t i = 0; i < 10; ++i) {
    if (exists(i)) left.push_back(i * 7 % 10);
  }
  std::sort(left.begin(), left.end());
  EXPECT_EQ(left, (std::vector<std::uint64_t>{0, 1, 2, 3}));
  EXPECT_EQ(store.prune(0).bytes, 4 * each);
  EXPECT_EQ(store.statistics().evicted, 10u);
}

TEST_F(StoreUpkeep, AHitMakesAnEntryYoungAtMostOnceADay) {
  Store store({root_}, {});
  ASSERT_TRUE(store.save(entry_of(1)) && store.save(entry_of(2)) && store.save(entry_of(3)));
  set_age(path(1), hours(25));
  set_age(path(2), hours(23));
  set_age(path(3), hours(-48));
  for (std::uint64_t i = 1; i <= 3; ++i) ASSERT_TRUE(store.load(key_of(i)).has_value());
  EXPECT_LT(age_of(path(1)), minutes(1));
  EXPECT_GT(age_of(path(2)), hours(22));
  EXPECT_LT(age_of(path(3)), minutes(1));
  EXPECT_GT(age_of(path(3)), hours(-1)) << "a time in the future is corrected";

  set_age(path(1), hours(1000));
  ASSERT_TRUE(store.load(key_of(1)).has_value());
  store.prune(encoded_bytes(entry_of(1)) * 2);
  EXPECT_TRUE(exists(1)) << "hot although old";
  EXPECT_FALSE(exists(2));
}

// Files of a machine whose clock was wrong, or of somebody who wants them to stay.
TEST_F(StoreUpkeep, EntriesOfTheFutureGoFirst) {
  Store store({root_}, {});
  for (std::uint64_t i = 0; i < 6; ++i) ASSERT_TRUE(store.save(entry_of(i)));
  set_age(path(0), hours(1000));
  set_age(path(1), hours(-24 * 365 * 14));
  set_age(path(2), hours(-2));
  set_age(path(3), -minutes(59));  // clocks of two machines may differ as much
  const std::uint64_t each = encoded_bytes(entry_of(0));
  EXPECT_EQ(store.prune(5 * each).bytes, each);
  EXPECT_FALSE(exists(2)) << "of the future, the oldest first";
  EXPECT_EQ(store.prune(4 * each).bytes, each);
  EXPECT_FALSE(exists(1));
  EXPECT_EQ(store.prune(3 * each).bytes, each);
  EXPECT_FALSE(exists(0)) << "the least recently used of those that are left";
  EXPECT_EQ(store.prune(1 * each).bytes, 2 * each);
  EXPECT_TRUE(exists(3));
}

TEST_F(StoreUpkeep, ACacheFullOfTheFutureIsOfUse) {
  constexpr std::uint64_t kLimit = 200 << 10, kFull = 7;
  Store store({root_, Mode::read_write, kLimit}, {});
  for (std::uint64_t i = 0; i < kFull; ++i) {
    ASSERT_TRUE(store.save(entry_of(i, 28'000)));
    set_age(path(i), hours(-24 * 365 * 14));
  }
  std::uint64_t hits = 0;
  for (std::uint64_t use = 0; use < 30; ++use) {
    const Entry entry = entry_of(100 + use % 3, 28'000);
    const bool hit = store.load(entry.key).has_value();
    hits += hit ? 1 : 0;
    if (!hit) {
      ASSERT_TRUE(store.save(entry));
    }
  }
  EXPECT_EQ(hits, 27u) << "each misses once";
}

TEST_F(StoreUpkeep, AHitCorrectsATimeInTheFuture) {
  Store store({root_}, {});
  ASSERT_TRUE(store.save(entry_of(1)));
  set_age(path(1), hours(-2));
  ASSERT_TRUE(store.load(key_of(1)).has_value());
  EXPECT_GT(age_of(path(1)), -minutes(1)) << "it would be evicted first";
}

TEST_F(StoreUpkeep, AMissOrADamagedEntryIsNotTouched) {
  Store store({root_}, [](const std::string&) {});
  ASSERT_TRUE(store.save(entry_of(1)));
  ASSERT_EQ(unlink(path(1).c_str()), 0);
  ASSERT_EQ(symlink("/etc/passwd", path(1).c_str()), 0);
  set_age(path(1), hours(100));
  const auto before = snapshot(root_);
  EXPECT_EQ(store.load(key_of(1)), std::nullopt);
  EXPECT_EQ(snapshot(root_), before);
}

TEST_F(StoreUpkeep, OneProcessNeverPassesTheSizeLimit) {
  for (const std::uint64_t limit : {5'000u, 40'000u, 300'000u}) {
    ScratchDirectory scratch(ScratchDirectory::Kind::memory);
    root_ = scratch / "cache";
    Store store({root_, Mode::read_write, limit}, {});
    std::uint64_t stored_bytes = 0;
    for (std::uint64_t i = 0; i < 300; ++i) {
      const Entry entry = entry_of(i, 500 + i * 37 % 3000);
      ASSERT_TRUE(store.save(entry));
      stored_bytes += encoded_bytes(entry);
      // Listing every time would take minutes.
      if (i % 10 == 0) {
        ASSERT_LE(bytes(), limit) << "after " << i;
      }
      ASSERT_TRUE(exists(i)) << "the newest entry stays";
    }
    ASSERT_GT(stored_bytes, limit);
    EXPECT_LE(bytes(), limit);
    EXPECT_GT(bytes(), limit / 4) << "pruning does not empty the cache";
    EXPECT_GT(store.statistics().evicted, 0u);
  }
}

// A scan leaves 2/32 of the limit free, and the next is due when one of them is used up: not earlier.
TEST_F(StoreUpkeep, BetweenTwoScansTheCacheGrows) {
  constexpr std::uint64_t kLimit = 1 << 20;
  Store store({root_, Mode::read_write, kLimit}, {});
  std::uint64_t peak = 0;
  for (std::uint64_t i = 0; i < 1600; ++i) {
    ASSERT_TRUE(store.save(entry_of(i, 1000)));
    if (i > 1200 && i % 5 == 0) peak = std::max(peak, bytes());
  }
  EXPECT_GT(peak, kLimit - kLimit * 3 / 64);
  EXPECT_LE(peak, kLimit);
}

TEST_F(StoreUpkeep, ThreadsOfOneProcessHoldTheLimitTogether) {
  constexpr std::uint64_t kLimit = 1 << 20, kThreads = 8, kEach = 30;
  for (const std::size_t payload : {3'000u, 20'000u, 100'000u}) {  // the last are larger than a 1/32 of the limit
    ScratchDirectory scratch(ScratchDirectory::Kind::memory);
    root_ = scratch / "cache";
    Store store({root_, Mode::read_write, kLimit}, {});
    std::atomic<std::uint64_t> saved{0};
    for (std::uint64_t round = 0; round < 4; ++round) {
      std::vector<std::thread> threads;
      for (std::uint64_t thread = 0; thread < kThreads; ++thread) {
        threads.emplace_back([&, first = (round * kThreads + thread) * kEach] {
          for (std::uint64_t i = first; i < first + kEach; ++i) saved += store.save(entry_of(i, payload)) ? 1 : 0;
        });
      }
      for (std::thread& thread : threads) thread.join();
      ASSERT_LE(bytes(), kLimit) << payload << " bytes each, round " << round;
    }
    EXPECT_EQ(saved, 4 * kThreads * kEach);
    // A thread that was held up in its scan may have made room for all the others after they were done.
    for (std::uint64_t i = 0; i < kLimit / 100'000; ++i) {
      ASSERT_TRUE(store.save(entry_of(4 * kThreads * kEach + i, payload)));
    }
    EXPECT_LE(bytes(), kLimit);
    EXPECT_GT(bytes(), kLimit / 2) << "what was counted comes off again";
  }
}

// Each of many short processes saves one entry; none of them alone ever stores enough to look at the whole directory.
TEST_F(StoreUpkeep, ManyShortProcessesHoldTheLimitTogether) {
  constexpr std::uint64_t kLimit = 200'000;
  std::uint64_t peak = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    ASSERT_TRUE(Store({root_, Mode::read_write, kLimit}, {}).save(entry_of(i, 1000)));
    if (i % 50 == 49) peak = std::max(peak, bytes());
  }
  // A scan is due for every 1/32 of the limit on average; sixteen times that without one does not happen.
  EXPECT_LE(peak, kLimit * 3 / 2);
  EXPECT_GT(peak, kLimit / 2);
}

TEST_F(StoreUpkeep, HotEntriesSurvivePressure) {
  Store store({root_, Mode::read_write, 100'000}, {});
  for (std::uint64_t i = 0; i < 5; ++i) ASSERT_TRUE(store.save(entry_of(i)));
  std::uint64_t hot_misses = 0;
  for (std::uint64_t i = 100; i < 1000; ++i) {
    ASSERT_TRUE(store.save(entry_of(i)));
    // Ages everything by two days, so that a hit counts as a use.
    for (std::uint64_t hot = 0; hot < 5; ++hot) {
      if (exists(hot)) set_age(path(hot), hours(48));
      hot_misses += store.load(key_of(hot)) ? 0 : 1;
    }
  }
  EXPECT_EQ(hot_misses, 0u);
  EXPECT_GT(store.statistics().evicted, 700u);
}

TEST_F(StoreUpkeep, TemporaryFilesAreSweptAfterAnHour) {
  Store store({root_}, {});
  ASSERT_TRUE(store.save(entry_of(1)));
  const std::string folder = std::filesystem::path(path(1)).parent_path();
  const std::string young = folder + "/tmp-123-0123456789abcdef", old = folder + "/tmp-4-ffffffffffffffff";
  const std::string future = folder + "/tmp-5-ffffffffffffffff";
  for (const std::string& file : {young, old, future}) write_file(file, "half an entry");
  set_age(young, minutes(59));
  set_age(old, minutes(61));
  set_age(future, hours(-2));
  EXPECT_EQ(store.list().size(), 1u);
  EXPECT_EQ(store.prune(1 << 20).bytes, 26u);
  EXPECT_TRUE(std::filesystem::exists(young));
  EXPECT_FALSE(std::filesystem::exists(old));
  EXPECT_FALSE(std::filesystem::exists(future));
  EXPECT_TRUE(exists(1));
  EXPECT_EQ(store.statistics().evicted, 0u);
}

TEST_F(StoreUpkeep, SaveSweepsTemporaryFilesToo) {
  Store store({root_, Mode::read_write, 64'000}, {});
  ASSERT_TRUE(store.save(entry_of(1)));
  const std::string old = std::filesystem::path(path(1)).parent_path() / "tmp-4-ffffffffffffffff";
  write_file(old, "half an entry");
  set_age(old, hours(2));
  for (std::uint64_t i = 2; i < 6; ++i) ASSERT_TRUE(store.save(entry_of(i)));
  EXPECT_FALSE(std::filesystem::exists(old));
}

TEST_F(StoreUpkeep, ClearRemovesEveryEntryWhateverItHolds) {
  Store store({root_}, {});
  for (std::uint64_t i = 0; i < 10; ++i) ASSERT_TRUE(store.save(entry_of(i)));
  write_file(path(3), "");
  write_file(path(4), "damaged");
  const std::uint64_t each = encoded_bytes(entry_of(0));
  EXPECT_EQ(store.clear().bytes, 8 * each + 7);
  for (std::uint64_t i = 0; i < 10; ++i) EXPECT_FALSE(exists(i));
  EXPECT_EQ(store.clear().bytes, 0u);
  EXPECT_EQ(store.statistics().evicted, 0u);
  EXPECT_TRUE(store.save(entry_of(1)));
}

TEST_F(StoreUpkeep, WhatCannotBeRemovedIsReported) {
  Warnings warnings;
  Store store({root_}, warnings.collector());
  for (std::uint64_t i = 0; i < 4; ++i) ASSERT_TRUE(store.save(entry_of(i)));
  const std::uint64_t each = encoded_bytes(entry_of(0));
  ASSERT_EQ(unlink(path(1).c_str()), 0);
  ASSERT_EQ(mkdir(path(1).c_str(), 0700), 0);
  const Removal cleared = store.clear();
  EXPECT_EQ(cleared.bytes, 3 * each);
  EXPECT_EQ(cleared.left, 1u);
  EXPECT_EQ(cleared.problem.value_or("").find("cannot remove " + key_of(1).hex() + ": "), 0u)
      << cleared.problem.value_or("none");
  EXPECT_EQ(store.statistics().errors, 1u);
  EXPECT_TRUE(warnings.all().empty()) << "the caller knows";
}

TEST_F(StoreUpkeep, ADirectoryThatIsNotLookedIntoIsReported) {
  Warnings warnings;
  Store store({root_}, warnings.collector());
  ASSERT_TRUE(store.save(entry_of(1)));
  const std::string folder = std::filesystem::path(path(1)).parent_path();
  ASSERT_EQ(chmod(folder.c_str(), 0777), 0);
  for (const Removal& removal : {store.clear(), store.prune(0)}) {
    EXPECT_EQ(removal.bytes, 0u);
    EXPECT_EQ(removal.left, 0u);
    EXPECT_NE(removal.problem.value_or("").find("can be written by"), std::string::npos);
  }
  EXPECT_TRUE(store.list().empty());
  EXPECT_EQ(store.statistics().errors, 3u);
  EXPECT_EQ(warnings.all().size(), 1u) << "list() has no other way to say so";
}

TEST_F(StoreUpkeep, ADirectoryThatMayNotBeWrittenKeepsItsEntries) {
  ASSERT_EQ(chmod(scratch_.path().c_str(), 0755), 0);
  ASSERT_EQ(mkdir(root_.c_str(), 0700), 0);
  if (geteuid() == 0) {
    ASSERT_EQ(chown(root_.c_str(), kOtherUser, kOtherUser), 0);
  }
  run_in_child([&] {
    become_other_user();
    Store store({root_}, {});
    ASSERT_TRUE(store.save(entry_of(1)));
    const std::string folder = std::filesystem::path(path(1)).parent_path();
    ASSERT_EQ(chmod(folder.c_str(), 0500), 0);
    for (const Removal& removal : {store.clear(), store.prune(0)}) {
      EXPECT_EQ(removal.bytes, 0u);
      EXPECT_EQ(removal.left, 1u);
      EXPECT_NE(removal.problem.value_or("").find("Permission denied"), std::string::npos);
    }
    ASSERT_EQ(chmod(folder.c_str(), 0700), 0);
    EXPECT_EQ(store.clear().left, 0u);
  });
}

TEST_F(StoreUpkeep, OlderSchemasCountAndNewerOnesAreLeftAlone) {
  Store store({root_}, {});
  ASSERT_TRUE(store.save(entry_of(1)));
  const std::string name = key_of(2).hex(), below = "/" + name.substr(0, 2) + "/";
  const std::string newer = "/v" + std::to_string(kSchema + 1);
  for (const std::string& schema : {std::string("/v1"), newer, std::string("/v01"), std::string("/v4294967297")}) {
    std::filesystem::create_directories(root_ + schema + below);
    for (const std::string& folder : {root_ + schema, root_ + schema + below})
      ASSERT_EQ(chmod(folder.c_str(), 0700), 0);
    write_file(root_ + schema + below + name, "an entry of another schema");
    set_age(root_ + schema + below + name, hours(1));
  }
  EXPECT_EQ(store.list().size(), 1u);
  EXPECT_EQ(store.prune(encoded_bytes(entry_of(1))).bytes, 26u);
  EXPECT_TRUE(exists(1));
  EXPECT_FALSE(std::filesystem::exists(root_ + "/v1" + below + name));
  for (const std::string& schema : {newer, std::string("/v01"), std::string("/v4294967297")}) {
    EXPECT_TRUE(std::filesystem::exists(root_ + schema + below + name)) << schema;
  }
}

TEST_F(StoreUpkeep, ForeignFilesAreNeverTouched) {
  Store store({root_}, [](const std::string&) {});
  ASSERT_TRUE(store.save(entry_of(1)));
  const std::string name = key_of(1).hex(), fan_out = name.substr(0, 2);
  const std::string other = fan_out == "00" ? "01" : "00";
  std::string upper = name;
  std::transform(upper.begin(), upper.end(), upper.begin(), [](char c) { return static_cast<char>(std::toupper(c)); });
  for (const std::string& folder :
       {kSchemaFolder + "/" + other, kSchemaFolder + "/zz", kSchemaFolder + "/000", std::string("/mine")}) {
    std::filesystem::create_directories(root_ + folder);
    ASSERT_EQ(chmod((root_ + folder).c_str(), 0700), 0);
  }
  const std::string in_folder = kSchemaFolder + "/" + fan_out + "/";
  const std::vector<std::string> foreign = {
      "/README", "/" + name, kSchemaFolder + "/notes.txt", kSchemaFolder + "/" + name, in_folder + "kernel.cu",
      in_folder + name + ".bak", in_folder + name.substr(1), in_folder + name + "0",
      in_folder + (upper == name ? name + "X" : upper), in_folder + ".nfs000000000000000100000001",
      in_folder + "tmp-1-0123", in_folder + "tmp--0123456789abcdef", in_folder + "tmp-1-0123456789abcdeg",
      in_folder + "tmp-1x-0123456789abcdef", in_folder + "tmp-1", in_folder + "tmp-1-0123456789abcdef0",
      in_folder + "TMP-1-0123456789abcdef",
      // An entry's name in the directory of another.
      kSchemaFolder + "/" + other + "/" + name, kSchemaFolder + "/zz/" + name, kSchemaFolder + "/000/" + name,
      "/mine/" + name};
  for (const std::string& file : foreign) {
    write_file(root_ + file, "mine");
    set_age(root_ + file, hours(1000));
  }
  std::filesystem::create_directory(root_ + in_folder + "tmp-9-0123456789abcdef");
  set_age(root_ + in_folder + "tmp-9-0123456789abcdef", hours(1000));
  ASSERT_EQ(unlink(path(1).c_str()), 0);
  const auto before = snapshot(root_);

  EXPECT_TRUE(store.list().empty());
  EXPECT_EQ(store.prune(0).bytes, 0u);
  EXPECT_EQ(store.clear().bytes, 0u);
  EXPECT_EQ(store.load(key_of(1)), std::nullopt);
  EXPECT_EQ(snapshot(root_), before);
}

}  // namespace
}  // namespace jitconv::cache
