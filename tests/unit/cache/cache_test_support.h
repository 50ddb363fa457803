// What the tests of the cache share: scratch directories, entries made from a number, a record of warnings, and
// children. Header only, so that the stress tests can use it as well.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "cache/store.h"

namespace jitconv::cache {

/// A private directory that is gone at the end of the test.
class ScratchDirectory {
 public:
  enum class Kind : std::uint8_t {
    disk,
    memory,  ///< where the machine has such a place, for tests that store so much that syncing takes most of their time
  };
  explicit ScratchDirectory(Kind kind = Kind::disk) {
    const char* configured = std::getenv("TMPDIR");
    const bool memory = kind == Kind::memory && access("/dev/shm", W_OK | X_OK) == 0;
    std::string pattern = memory ? "/dev/shm" : configured && *configured ? configured : "/tmp";
    pattern += "/jitconv-cache-test-XXXXXX";
    if (!mkdtemp(pattern.data())) std::perror("mkdtemp"), std::abort();
    path_ = pattern;
  }
  ~ScratchDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline Key key_of(std::uint64_t number) { return Key{Digest().add("test key").add(number).finish()}; }

/// Deterministic bytes that differ between entries and between versions of one.
inline std::string payload_of(std::uint64_t number, std::size_t bytes) {
  std::string payload(bytes, '\0');
  std::uint64_t state = number * 0x9e3779b97f4a7c15u + 1;
  for (char& byte : payload) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    byte = static_cast<char>(state >> 56);
  }
  return payload;
}

inline Entry entry_of(std::uint64_t number, std::size_t payload_bytes = 1000) {
  return {key_of(number),
          EntryKind::cubin,
          "log of " + std::to_string(number),
          payload_of(number, payload_bytes),
          {{"number", std::to_string(number)}}};
}

/// Below the root of a cache.
inline const std::string kSchemaFolder = "/v" + std::to_string(kSchema);

inline std::string entry_path(const std::string& root, const Key& key) {
  return root + kSchemaFolder + "/" + key.hex().substr(0, 2) + "/" + key.hex();
}

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_file(const std::string& path, const std::string& bytes, mode_t mode = 0600) {
  std::ofstream(path, std::ios::binary) << bytes;
  ASSERT_EQ(chmod(path.c_str(), mode), 0) << path;
}

inline void set_age(const std::string& path, std::chrono::seconds age) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto then = std::chrono::duration_cast<std::chrono::seconds>(now) - age;
  const struct timespec times[2] = {{then.count(), 0}, {then.count(), 0}};
  ASSERT_EQ(utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW), 0) << path;
}

inline std::chrono::seconds age_of(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return std::chrono::hours(1'000'000);
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::seconds>(now) - std::chrono::seconds(status.st_mtim.tv_sec);
}

/// Every path below a directory with what a write would change.
inline std::map<std::string, std::string> snapshot(const std::string& root) {
  std::map<std::string, std::string> files;
  for (const auto& item : std::filesystem::recursive_directory_iterator(root)) {
    struct stat status {};
    lstat(item.path().c_str(), &status);
    std::string text = std::to_string(status.st_ino) + " " + std::to_string(status.st_mode) + " " +
                       std::to_string(status.st_mtim.tv_sec) + "." + std::to_string(status.st_mtim.tv_nsec);
    if (item.is_regular_file()) text += " " + read_file(item.path());
    files[item.path()] = text;
  }
  return files;
}

/// Collects what a store warns of.
class Warnings {
 public:
  std::function<void(const std::string&)> collector() {
    return [this](const std::string& message) {
      const std::lock_guard lock(mutex_);
      messages_.push_back(message);
    };
  }
  std::vector<std::string> all() const {
    const std::lock_guard lock(mutex_);
    return messages_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> messages_;
};

/// The exit code of a child that has nothing to say because the machine does not let it.
inline constexpr int kChildSkipped = 77;

/// Runs `body` in a forked child; the failures it records are printed there and counted here. A crash is a failure.
/// Returns true if the child could run its test.
template <class Body>
bool run_in_child(Body body) {
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    body();
    std::fflush(nullptr);
    _exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kChildSkipped) return false;
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "child ended with status " << status;
  return true;
}

/// "nobody": a user that owns no cache.
inline constexpr uid_t kOtherUser = 65534;

/// Gives up root's powers, which no permission stops, in a child.
inline void become_other_user() {
  if (geteuid() == 0 && (setgid(kOtherUser) != 0 || setuid(kOtherUser) != 0)) std::perror("setuid"), _exit(1);
}

}  // namespace jitconv::cache
