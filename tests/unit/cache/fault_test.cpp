// Failing system calls. The linker sends every file call of the cache through the wrappers below (--wrap, see
// CMakeLists.txt), which can fail the n-th call of a name once, cut transfers short, and record what was called.
#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cache/store.h"
#include "unit/cache/cache_test_support.h"

namespace {

struct Faults {
  std::string call;        ///< which one fails; "" is none
  int occurrence = 0;      ///< 1 is the first
  int last = 0;            ///< the last of several in a row; 0 for one alone
  int error = 0;           ///< its errno
  std::size_t most = 0;    ///< bytes that read and write move at a time; 0 is no limit
  bool interrupt = false;  ///< every other call of a name that can be interrupted is
  std::vector<std::string> log;
  std::map<std::string, std::ptrdiff_t> counts;

  bool fails(std::string_view name, bool interruptible = false) {
    const std::ptrdiff_t seen = ++counts[std::string(name)];
    log.emplace_back(name);
    if (name == call && seen >= occurrence && seen <= std::max(occurrence, last)) {
      errno = error;
      return true;
    }
    if (interrupt && interruptible && seen % 2 == 1) {
      errno = EINTR;
      return true;
    }
    return false;
  }
  std::size_t cut(std::size_t bytes) const { return most != 0 && bytes > most ? most : bytes; }
  std::ptrdiff_t count(const std::string& name) const { return counts.contains(name) ? counts.at(name) : 0; }
};

Faults* active = nullptr;  ///< null: every call goes through

bool fails(const char* name, bool interruptible = false) { return active && active->fails(name, interruptible); }
std::size_t cut(std::size_t bytes) { return active ? active->cut(bytes) : bytes; }

/// Faults in force for a scope.
class Injection : public Faults {
 public:
  Injection() { active = this; }
  ~Injection() { active = nullptr; }
};

}  // namespace

extern "C" {
int __real_open(const char*, int, ...);
int __real_openat(int, const char*, int, ...);
int __real_mkdir(const char*, mode_t);
int __real_mkdirat(int, const char*, mode_t);
ssize_t __real_read(int, void*, size_t);
ssize_t __real_write(int, const void*, size_t);
int __real_fsync(int);
int __real_close(int);
int __real_renameat(int, const char*, int, const char*);
int __real_fstat(int, struct stat*);
int __real_fstatat(int, const char*, struct stat*, int);
int __real_unlinkat(int, const char*, int);
int __real_futimens(int, const struct timespec*);
DIR* __real_fdopendir(int);
struct dirent* __real_readdir(DIR*);
void* __real_mmap(void*, size_t, int, int, int, off_t);
ssize_t __real_getrandom(void*, size_t, unsigned);

int __wrap_open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return fails("open", true) ? -1 : __real_open(path, flags, mode);
}
int __wrap_openat(int directory, const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return fails("openat", true) ? -1 : __real_openat(directory, path, flags, mode);
}
int __wrap_mkdir(const char* path, mode_t mode) { return fails("mkdir") ? -1 : __real_mkdir(path, mode); }
int __wrap_mkdirat(int directory, const char* path, mode_t mode) {
  return fails("mkdirat") ? -1 : __real_mkdirat(directory, path, mode);
}
ssize_t __wrap_read(int file, void* buffer, size_t bytes) {
  return fails("read", true) ? -1 : __real_read(file, buffer, cut(bytes));
}
ssize_t __wrap_write(int file, const void* buffer, size_t bytes) {
  return fails("write", true) ? -1 : __real_write(file, buffer, cut(bytes));
}
int __wrap_fsync(int file) { return fails("fsync", true) ? -1 : __real_fsync(file); }
// Linux releases the descriptor whatever it returns.
int __wrap_close(int file) {
  const bool failing = fails("close");
  const int error = errno;
  const int result = __real_close(file);
  if (failing) errno = error;
  return failing ? -1 : result;
}
int __wrap_renameat(int from, const char* old_name, int to, const char* new_name) {
  return fails("renameat") ? -1 : __real_renameat(from, old_name, to, new_name);
}
int __wrap_fstat(int file, struct stat* status) { return fails("fstat") ? -1 : __real_fstat(file, status); }
int __wrap_fstatat(int directory, const char* path, struct stat* status, int flags) {
  return fails("fstatat") ? -1 : __real_fstatat(directory, path, status, flags);
}
int __wrap_unlinkat(int directory, const char* path, int flags) {
  return fails("unlinkat") ? -1 : __real_unlinkat(directory, path, flags);
}
int __wrap_futimens(int file, const struct timespec* times) {
  return fails("futimens") ? -1 : __real_futimens(file, times);
}
DIR* __wrap_fdopendir(int file) { return fails("fdopendir") ? nullptr : __real_fdopendir(file); }
struct dirent* __wrap_readdir(DIR* listing) {
  return fails("readdir") ? nullptr : __real_readdir(listing);
}
void* __wrap_mmap(void* where, size_t bytes, int protection, int flags, int file, off_t offset) {
  return fails("mmap") ? MAP_FAILED : __real_mmap(where, bytes, protection, flags, file, offset);
}
ssize_t __wrap_getrandom(void* buffer, size_t bytes, unsigned flags) {
  return fails("getrandom") ? -1 : __real_getrandom(buffer, bytes, flags);
}
}

namespace jitconv::cache {
namespace {

constexpr const char* kCalls[] = {"open",     "openat",    "mkdir",    "mkdirat",  "read",    "write",
                                  "fsync",    "close",     "renameat", "fstat",    "fstatat", "unlinkat",
                                  "futimens", "fdopendir", "readdir",  "getrandom"};
constexpr int kErrors[] = {EIO,    ENOSPC, EDQUOT, ESTALE, EACCES,  EPERM, EROFS, EBUSY, EMFILE,
                           ENFILE, ENOMEM, ENOENT, EEXIST, ENOTDIR, ELOOP, EFBIG, EINTR};

class CacheFaults : public ::testing::Test {
 protected:
  /// Everything a store does: create, publish, hit, miss, touch, drop a damaged entry, prune, list, clear.
  void exercise(Store& store) {
    store.save(entry_of(1));
    store.save(entry_of(2));
    for (std::uint64_t number = 0; number < 3; ++number) check(store, number);
    const auto old = std::chrono::hours(100);
    if (std::filesystem::exists(path(1))) set_age(path(1), old);
    check(store, 1);
    if (std::filesystem::exists(path(2))) write_file(path(2), "damaged");
    check(store, 2);
    store.save(entry_of(3));
    store.list();
    store.verify();
    store.prune(encoded_bytes(entry_of(1)));
    for (std::uint64_t number = 0; number < 4; ++number) check(store, number);
    store.clear();
  }

  void check(Store& store, std::uint64_t number) {
    const auto loaded = store.load(key_of(number));
    EXPECT_TRUE(!loaded || *loaded == entry_of(number)) << "entry " << number;
  }

  std::string path(std::uint64_t number) const { return entry_path(root_, key_of(number)); }

  StoreConfig config() const { return {root_, Mode::read_write, 20'000}; }

  ScratchDirectory scratch_{ScratchDirectory::Kind::memory};
  std::string root_ = scratch_ / "parent/cache";
};

// Each call of each kind fails once in every way. The process lives, no wrong byte is served, at most one warning of
// each kind is given, no descriptor stays open, and the next process finds a cache that works.
TEST_F(CacheFaults, EveryFailureOfEveryCallIsSurvived) {
  std::uint64_t cases = 0;
  for (const char* call : kCalls) {
    std::ptrdiff_t occurrences = 0;
    {
      Injection nothing;
      Store store(config(), [](const std::string&) {});
      exercise(store);
      occurrences = nothing.count(call);
      std::filesystem::remove_all(scratch_ / "parent");
    }
    ASSERT_GT(occurrences, 0) << call << " is not part of the exercise";
    for (int occurrence = 1; occurrence <= occurrences; ++occurrence) {
      for (const int error : kErrors) {
        SCOPED_TRACE(std::string(call) + " " + std::to_string(occurrence) + " " + std::strerror(error));
        Warnings warnings;
        const int first_free = dup(0);
        close(first_free);
        {
          Injection fault;
          fault.call = call;
          fault.occurrence = occurrence;
          fault.error = error;
          Store store(config(), warnings.collector());
          exercise(store);
        }
        EXPECT_LE(warnings.all().size(), 2u);
        const int still_free = dup(0);
        close(still_free);
        EXPECT_EQ(still_free, first_free) << "a descriptor leaked";
        Store next(config(), warnings.collector());
        const std::size_t before = warnings.all().size();
        EXPECT_TRUE(next.save(entry_of(1)));
        EXPECT_EQ(next.load(key_of(1)), entry_of(1));
        EXPECT_EQ(warnings.all().size(), before);
        if (HasFailure()) return;
        std::filesystem::remove_all(scratch_ / "parent");
        ++cases;
      }
    }
  }
  std::printf("%llu failures injected\n", static_cast<unsigned long long>(cases));
  EXPECT_GT(cases, 3000u);
}

TEST_F(CacheFaults, InterruptionsAndShortTransfersAreContinued) {
  Warnings warnings;
  Injection fault;
  fault.most = 7;
  fault.interrupt = true;
  Store store(config(), warnings.collector());
  EXPECT_TRUE(store.save(entry_of(1)));
  EXPECT_EQ(store.load(key_of(1)), entry_of(1));
  EXPECT_GT(fault.count("write"), 100);
  EXPECT_GT(fault.count("read"), 100);
  EXPECT_EQ(store.statistics().errors, 0u);
  EXPECT_TRUE(warnings.all().empty());
}

TEST_F(CacheFaults, AFailedWriteSyncCloseOrRenamePublishesNothing) {
  for (const char* call : {"write", "fsync", "renameat"}) {
    Injection fault;
    fault.call = call;
    fault.occurrence = 1;
    fault.error = EIO;
    Store store(config(), [](const std::string&) {});
    EXPECT_FALSE(store.save(entry_of(1))) << call;
    EXPECT_EQ(store.statistics().errors, 1u) << call;
    for (const auto& item : std::filesystem::recursive_directory_iterator(root_)) {
      EXPECT_TRUE(item.is_directory()) << call << " left " << item.path();
    }
    std::filesystem::remove_all(scratch_ / "parent");
  }
  // The close that follows fsync is the file's own; those of the directories come before and after.
  std::ptrdiff_t file_close = 0;
  {
    Injection record;
    Store(config(), [](const std::string&) {}).save(entry_of(1));
    const auto sync = std::find(record.log.begin(), record.log.end(), "fsync");
    file_close = std::count(record.log.begin(), sync, "close") + 1;
    std::filesystem::remove_all(scratch_ / "parent");
  }
  Injection fault;
  fault.call = "close";
  fault.occurrence = static_cast<int>(file_close);
  fault.error = EDQUOT;
  EXPECT_FALSE(Store(config(), [](const std::string&) {}).save(entry_of(1)));
  EXPECT_FALSE(std::filesystem::exists(path(1)));
}

// What a cleaner does that removes the directory between two of our calls.
TEST_F(CacheFaults, ASaveStartsOverWhenADirectoryOrItsFileVanishes) {
  for (const char* call : {"openat", "mkdirat", "renameat"}) {
    for (int occurrence = 1; occurrence <= 3; ++occurrence) {
      Injection fault;
      fault.call = call;
      fault.occurrence = occurrence;
      fault.error = ENOENT;
      Warnings warnings;
      Store store({root_}, warnings.collector());
      EXPECT_TRUE(store.save(entry_of(1))) << call << " " << occurrence;
      EXPECT_EQ(store.load(key_of(1)), entry_of(1)) << call << " " << occurrence;
      EXPECT_TRUE(warnings.all().empty());
      std::filesystem::remove_all(scratch_ / "parent");
    }
  }
}

// A cleaner that never stops must not keep a save going for ever.
TEST_F(CacheFaults, ASaveGivesUpWhereItsFileKeepsVanishing) {
  Injection fault;
  fault.call = "renameat";
  fault.occurrence = 1;
  fault.last = 50;
  fault.error = ENOENT;
  Warnings warnings;
  Store store({root_}, warnings.collector());
  EXPECT_FALSE(store.save(entry_of(1)));
  EXPECT_EQ(fault.count("renameat"), 3);
  EXPECT_EQ(store.statistics().errors, 1u);
  ASSERT_EQ(warnings.all().size(), 1u);
  EXPECT_NE(warnings.all().front().find("vanishes while an entry is stored"), std::string::npos)
      << warnings.all().front();
}

TEST_F(CacheFaults, ASaveSyncsBeforeItRenamesAndReadsNothingBack) {
  Injection record;
  Store store({root_}, {});
  ASSERT_TRUE(store.save(entry_of(1)));
  const auto& log = record.log;
  const auto last_write = std::find(log.rbegin(), log.rend(), "write").base() - 1;
  const auto sync = std::find(log.begin(), log.end(), "fsync");
  const auto rename = std::find(log.begin(), log.end(), "renameat");
  const auto close = std::find(sync, log.end(), "close");
  ASSERT_TRUE(sync != log.end() && rename != log.end());
  EXPECT_LT(last_write, sync);
  EXPECT_LT(sync, close);
  EXPECT_LT(close, rename);
  EXPECT_EQ(record.count("renameat"), 1);
  EXPECT_EQ(record.count("read"), 0);
}

TEST_F(CacheFaults, NothingIsEverMapped) {
  Injection record;
  Store store(config(), [](const std::string&) {});
  exercise(store);
  EXPECT_EQ(record.count("mmap"), 0);
  EXPECT_GT(record.count("read"), 0);
}

// A system without fsync for the file system in question must not lose its cache.
TEST_F(CacheFaults, AFileSystemWithoutSyncIsFine) {
  for (const int error : {EINVAL, ENOSYS, EOPNOTSUPP}) {
    Injection fault;
    fault.call = "fsync";
    fault.occurrence = 1;
    fault.error = error;
    EXPECT_TRUE(Store({root_}, {}).save(entry_of(1)));
  }
}

TEST_F(CacheFaults, WithoutRandomnessTemporaryNamesStillDiffer) {
  for (int occurrence = 1; occurrence <= 3; ++occurrence) {
    Injection fault;
    fault.call = "getrandom";
    fault.occurrence = occurrence;
    fault.error = EAGAIN;
    Store store({root_}, {});
    EXPECT_TRUE(store.save(entry_of(1)));
    EXPECT_TRUE(store.save(entry_of(2)));
    EXPECT_EQ(store.load(key_of(2)), entry_of(2));
  }
}

}  // namespace
}  // namespace jitconv::cache
