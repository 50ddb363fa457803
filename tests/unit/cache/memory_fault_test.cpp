// Running out of memory in the middle of a cache operation: a miss or a dropped store, never an exception. This file
// replaces the program's operator new, so that the n-th allocation can fail.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>
#include <optional>
#include <string>

#include "cache/store.h"
#include "unit/cache/cache_test_support.h"

namespace {

/// Allocations that still succeed; negative: all.
long allocations_left = -1;
bool allocation_failed = false;

void* allocate(std::size_t bytes) {
  if (allocations_left == 0) {
    allocation_failed = true;
    throw std::bad_alloc();
  }
  if (allocations_left > 0) --allocations_left;
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t bytes) { return allocate(bytes); }
void* operator new[](std::size_t bytes) { return allocate(bytes); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }

namespace jitconv::cache {
namespace {

/// Runs `operation` with its first allocation failing, then its second, until none fails any more. Returns how many
/// did.
template <class Operation>
int with_every_allocation_failing(const Operation& operation) {
  for (int survived = 0;; ++survived) {
    allocation_failed = false;
    allocations_left = survived;
    bool threw = false;
    try {
      operation();
    } catch (...) {
      threw = true;
    }
    allocations_left = -1;
    EXPECT_FALSE(threw) << "allocation " << survived + 1;
    if (!allocation_failed || threw) return survived;
  }
}

class MemoryFaults : public ::testing::Test {
 protected:
  ScratchDirectory scratch_{ScratchDirectory::Kind::memory};
  const std::string root_ = scratch_ / "cache";
  Store store_{{root_}, [](const std::string&) {}};
};

TEST_F(MemoryFaults, ALoadThatRunsOutOfMemoryIsAMiss) {
  ASSERT_TRUE(store_.save(entry_of(1)));
  const Key key = key_of(1);
  const Entry wanted = entry_of(1);
  bool wrong = false;
  const int failures = with_every_allocation_failing([&] {
    const std::optional<Entry> found = store_.load(key);
    const long left = allocations_left;
    allocations_left = -1;
    wrong = wrong || (found && *found != wanted);
    allocations_left = left;
  });
  EXPECT_GT(failures, 3);
  EXPECT_FALSE(wrong);
  EXPECT_EQ(store_.load(key), wanted);
  EXPECT_GE(store_.statistics().errors, static_cast<std::uint64_t>(failures));
}

TEST_F(MemoryFaults, ASaveThatRunsOutOfMemoryIsDropped) {
  const Entry entry = entry_of(1);
  const int failures = with_every_allocation_failing([&] { store_.save(entry); });
  EXPECT_GT(failures, 3);
  EXPECT_EQ(store_.load(entry.key), entry);
}

TEST_F(MemoryFaults, UpkeepThatRunsOutOfMemoryDoesLess) {
  for (std::uint64_t i = 1; i <= 3; ++i) ASSERT_TRUE(store_.save(entry_of(i)));
  EXPECT_GT(with_every_allocation_failing([&] { static_cast<void>(store_.verify()); }), 3);
  EXPECT_GT(with_every_allocation_failing([&] { static_cast<void>(store_.prune(1'000'000'000)); }), 3);
  EXPECT_EQ(store_.list().size(), 3u);
}

}  // namespace
}  // namespace jitconv::cache
