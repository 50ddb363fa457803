// Many processes and threads on one cache while others delete, prune, damage and kill: no wrong byte, no crash, no
// hang. Processes are forked before any thread exists; each counts what it saw in memory that all share.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <new>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "cache/store.h"
#include "unit/cache/cache_test_support.h"

namespace jitconv::cache {
namespace {

using Clock = std::chrono::steady_clock;

// The allocators of ThreadSanitizer and AddressSanitizer are not made for a fork with threads: children deadlock.
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitizerAllocator = true;
#elif defined(__has_feature)
constexpr bool kSanitizerAllocator = __has_feature(thread_sanitizer) || __has_feature(address_sanitizer);
#else
constexpr bool kSanitizerAllocator = false;
#endif

constexpr std::uint64_t kKeys = 24;

struct Counters {
  std::atomic<std::uint64_t> wrong{0}, hits{0}, misses{0}, stored{0}, dropped{0}, corrupt{0}, errors{0}, disturbed{0};
};

/// Memory that forked children share with us.
class SharedCounters {
 public:
  SharedCounters() {
    memory_ = mmap(nullptr, sizeof(Counters), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory_ == MAP_FAILED) std::perror("mmap"), std::abort();
    counters_ = new (memory_) Counters;
  }
  ~SharedCounters() { munmap(memory_, sizeof(Counters)); }
  Counters* operator->() { return counters_; }
  Counters& operator*() { return *counters_; }

 private:
  void* memory_;
  Counters* counters_;
};

/// From a few bytes to several pages, so that readers see entries of every kind being replaced.
const std::vector<Entry>& entries() {
  static const std::vector<Entry> all = [] {
    std::vector<Entry> made;
    for (std::uint64_t i = 0; i < kKeys; ++i) made.push_back(entry_of(i, 10 + i * i * 150));
    return made;
  }();
  return all;
}

/// Loads and saves until the deadline, as programs that compile the same kernels do.
void use(Store& store, Counters& counters, Clock::time_point deadline, unsigned seed) {
  std::minstd_rand random(seed);
  while (Clock::now() < deadline) {
    const Entry& entry = entries()[random() % kKeys];
    const auto loaded = store.load(entry.key);
    if (loaded) {
      ++counters.hits;
      if (*loaded != entry) ++counters.wrong;
    } else {
      ++counters.misses;
    }
    if (!loaded || random() % 16 == 0) ++(store.save(entry) ? counters.stored : counters.dropped);
  }
}

void add_statistics(const Store& store, Counters& counters) {
  counters.corrupt += store.statistics().corrupt;
  counters.errors += store.statistics().errors;
}

class CacheStress : public ::testing::Test {
 protected:
  void SetUp() override { entries(); }

  StoreConfig config(std::uint64_t max_bytes = std::uint64_t{64} << 20) const {
    return {root_, Mode::read_write, max_bytes};
  }

  /// Forks `users` processes that use the cache, and one for each of `disturbers`, called over and over; all must end
  /// well.
  void run(unsigned users, const StoreConfig& configuration,
           const std::vector<std::function<void(std::minstd_rand&)>>& disturbers, std::chrono::milliseconds length) {
    const auto deadline = Clock::now() + length;
    std::vector<pid_t> children;
    for (unsigned i = 0; i < users + disturbers.size(); ++i) {
      const pid_t child = fork();
      ASSERT_GE(child, 0);
      if (child == 0) {
        // A hang is a failure too.
        alarm(60);
        if (i < users) {
          Store store(configuration, [](const std::string&) {});
          use(store, *counters_, deadline, i + 1);
          add_statistics(store, *counters_);
        } else {
          std::minstd_rand random(i + 1);
          for (; Clock::now() < deadline; ++counters_->disturbed) disturbers[i - users](random);
        }
        _exit(0);
      }
      children.push_back(child);
    }
    for (const pid_t child : children) {
      int status = 0;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
    }
    report();
    EXPECT_EQ(counters_->wrong, 0u);
    EXPECT_GT(counters_->hits, 100u);
    EXPECT_GT(counters_->misses, 0u);
    EXPECT_GT(counters_->stored, 20u);
    for (std::size_t i = 0; i < disturbers.size(); ++i) EXPECT_GT(counters_->disturbed, 0u);
  }

  void report() {
    std::printf(
        "hits %llu misses %llu stored %llu dropped %llu corrupt %llu errors %llu disturbances %llu wrong %llu\n",
        number(counters_->hits), number(counters_->misses), number(counters_->stored), number(counters_->dropped),
        number(counters_->corrupt), number(counters_->errors), number(counters_->disturbed), number(counters_->wrong));
  }
  static unsigned long long number(const std::atomic<std::uint64_t>& value) { return value; }

  void expect_all_whole() {
    Store store(config(), {});
    for (const FileReport& file : store.verify()) EXPECT_EQ(file.problem, std::nullopt) << file.path << *file.problem;
  }

  std::string random_path(std::minstd_rand& random) const { return entry_path(root_, key_of(random() % kKeys)); }

  ScratchDirectory scratch_;
  std::string root_ = scratch_ / "cache";
  SharedCounters counters_;
};

// The size limit is a third of what the entries need, so every process prunes as well.
TEST_F(CacheStress, ProcessesShareACacheThatIsDeletedFromAndPruned) {
  std::uint64_t total = 0;
  for (const Entry& entry : entries()) total += encoded_bytes(entry);
  run(6, config(total / 3),
      {[&](std::minstd_rand& random) { unlink(random_path(random).c_str()); },
       [&](std::minstd_rand& random) {
         Store store(config(), {});
         random() % 10 == 0 ? store.clear() : store.prune(random() % total);
         std::this_thread::sleep_for(std::chrono::milliseconds(1));
       }},
      std::chrono::milliseconds(3000));
  // Only whole files are ever published, and a file that vanishes is a plain miss.
  EXPECT_EQ(counters_->corrupt, 0u);
  EXPECT_EQ(counters_->errors, 0u);
  EXPECT_EQ(counters_->dropped, 0u);
  expect_all_whole();
}

TEST_F(CacheStress, ProcessesShareACacheThatIsRemovedAsAWhole) {
  run(4, config(), {[&](std::minstd_rand& random) {
        std::error_code ignored;
        std::filesystem::remove_all(random() % 2 == 0 ? root_ : root_ + kSchemaFolder, ignored);
        std::this_thread::sleep_for(std::chrono::milliseconds(random() % 5));
      }},
      std::chrono::milliseconds(2000));
  EXPECT_EQ(counters_->corrupt, 0u);
  // A store may be dropped if its directory is removed under it again and again, but that is the exception.
  EXPECT_LT(counters_->dropped, counters_->stored);
  expect_all_whole();
}

/// Overwrites, truncates, extends or swaps entry files in place.
void damage(const std::string& path, const std::string& other, std::minstd_rand& random) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  const auto size = static_cast<std::uint64_t>(lseek(file, 0, SEEK_END));
  const auto place = static_cast<off_t>(random() % (size + 1));
  const std::string noise = payload_of(random(), 1 + random() % 300);
  const std::string zeros(4096, '\0');
  switch (random() % 5) {
    case 0:
      static_cast<void>(!ftruncate(file, place));
      break;
    case 1:
      static_cast<void>(!pwrite(file, noise.data(), noise.size(), place));
      break;
    case 2:
      static_cast<void>(!pwrite(file, zeros.data(), zeros.size(), place));
      break;
    case 3:
      static_cast<void>(!pwrite(file, noise.data(), noise.size(), static_cast<off_t>(size)));
      break;
    default:
      static_cast<void>(!rename(path.c_str(), other.c_str()));
  }
  close(file);
}

TEST_F(CacheStress, ProcessesNeverReadWhatAVandalLeaves) {
  run(4, config(), {[&](std::minstd_rand& random) {
        damage(random_path(random), random_path(random), random);
        std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
      }},
      std::chrono::milliseconds(3000));
  EXPECT_GT(counters_->corrupt, 20u) << "the vandal was there";
  Store store(config(), [](const std::string&) {});
  for (int round = 0; round < 2; ++round) {
    for (const Entry& entry : entries()) {
      const auto loaded = store.load(entry.key);
      EXPECT_TRUE(!loaded || *loaded == entry);
      if (!loaded) {
        EXPECT_TRUE(store.save(entry));
      }
    }
  }
  expect_all_whole();
}

TEST_F(CacheStress, KilledWritersLeaveAUsableCache) {
  std::minstd_rand random(1);
  std::uint64_t leftovers = 0;
  const auto deadline = Clock::now() + std::chrono::seconds(2);
  int rounds = 0;
  for (; Clock::now() < deadline; ++rounds) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      Store store(config(200'000), [](const std::string&) {});
      for (std::uint64_t i = 0;; ++i) store.save(entries()[i % kKeys]);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 5000));
    ASSERT_EQ(kill(child, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
    expect_all_whole();
  }
  for (const auto& item : std::filesystem::recursive_directory_iterator(root_)) {
    if (item.path().filename().string().substr(0, 4) != "tmp-") continue;
    ++leftovers;
    set_age(item.path(), std::chrono::hours(2));
  }
  std::printf("%d writers killed, %llu temporary files left\n", rounds, static_cast<unsigned long long>(leftovers));
  EXPECT_GT(rounds, 20);
  EXPECT_GT(leftovers, 0u) << "no writer was killed in the middle";
  Store store(config(), {});
  store.prune(std::uint64_t{1} << 30);
  for (const auto& item : std::filesystem::recursive_directory_iterator(root_)) {
    EXPECT_NE(item.path().filename().string().substr(0, 4), "tmp-") << item.path();
  }
  for (const Entry& entry : entries()) EXPECT_TRUE(store.save(entry));
  for (const Entry& entry : entries()) EXPECT_EQ(store.load(entry.key), entry);
}

TEST_F(CacheStress, ThreadsShareAStore) {
  std::atomic<std::uint64_t> warnings{0};
  Store store(config(300'000), [&](const std::string&) { ++warnings; });
  // A slow machine takes longer than two seconds for as many hits as show that threads met.
  constexpr std::uint64_t kEnoughHits = 1000;
  const auto begin = Clock::now();
  const auto busy = [&] {
    const auto age = Clock::now() - begin;
    return age < std::chrono::seconds(2) || (counters_->hits < kEnoughHits && age < std::chrono::seconds(30));
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 24; ++i) {
    threads.emplace_back([&, i] {
      for (unsigned seed = i + 1; busy(); seed += 24)
        use(store, *counters_, Clock::now() + std::chrono::milliseconds(100), seed);
    });
  }
  threads.emplace_back([&] {
    std::minstd_rand random(1);
    while (busy()) {
      store.list();
      unlink(random_path(random).c_str());
      store.prune(random() % 400'000);
      store.verify();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  });
  for (std::thread& thread : threads) thread.join();
  add_statistics(store, *counters_);
  report();
  const StoreStatistics statistics = store.statistics();
  EXPECT_EQ(counters_->wrong, 0u);
  EXPECT_EQ(statistics.hits, counters_->hits);
  EXPECT_EQ(statistics.misses, counters_->misses);
  EXPECT_EQ(statistics.stored, counters_->stored);
  EXPECT_EQ(statistics.corrupt, 0u);
  EXPECT_EQ(statistics.errors, 0u);
  EXPECT_EQ(warnings, 0u);
  EXPECT_GE(statistics.hits, kEnoughHits);
}

// A child forked while other threads are inside the store must be able to use it.
TEST_F(CacheStress, ChildrenForkedFromABusyProcessCanUseTheStore) {
  if (kSanitizerAllocator) GTEST_SKIP() << "a sanitizer's allocator does not support a fork with threads";
  Store store(config(300'000), [](const std::string&) {});
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (unsigned seed = i; !stop; ++seed) use(store, *counters_, Clock::now() + std::chrono::milliseconds(5), seed);
    });
  }
  for (unsigned round = 0; round < 100; ++round) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(20);
      const Entry& entry = entries()[round % kKeys];
      const bool saved = store.save(entry);
      const auto loaded = store.load(entry.key);
      // Others may have pruned it meanwhile.
      _exit(saved && (!loaded || *loaded == entry) ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "round " << round << " status " << status;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(counters_->wrong, 0u);
}

}  // namespace
}  // namespace jitconv::cache
