// See files.h. Interrupted calls are repeated, short reads and writes continued, and every errno reaches the caller.
#include "cache/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <memory>
#include <system_error>

#include "cache/write_all.h"

namespace jitconv::cache {

namespace {

constexpr mode_t kPrivateDirectory = 0700;
constexpr mode_t kPrivateFile = 0600;
constexpr mode_t kPublicDirectory = 0777;
constexpr mode_t kPublicFile = 0666;
constexpr int kDirectoryFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

template <class Call>
auto retry_interrupted(Call call) {
  auto result = call();
  while (result == -1 && errno == EINTR) result = call();
  return result;
}

Problem failed(std::string_view call, const std::string& name, int error) {
  if (error == ENOENT) return {Problem::Kind::absent, error, {}};
  std::string text(call);
  return {Problem::Kind::failed, error, text + " " + name + ": " + std::generic_category().message(error)};
}

Problem refused(const std::string& name, const std::string& reason) {
  return {Problem::Kind::refused, 0, name + " " + reason};
}

bool is_own(const struct stat& status) { return status.st_uid == geteuid(); }

/// Why somebody other than the effective user and root may write a file or directory; empty if nobody may. Whoever can
/// write a cache entry chooses code that runs on the GPU. Root can do so anyway.
std::string distrust(const struct stat& status) {
  if (!is_own(status) && status.st_uid != 0) {
    return "is owned by user " + std::to_string(status.st_uid) + ", not by user " + std::to_string(geteuid()) +
           (geteuid() != 0 ? " or root" : "");
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) return "can be written by its group or by everybody";
  return {};
}

Outcome<FileDescriptor> opened_directory(int descriptor, const std::string& name) {
  if (descriptor < 0) {
    const int error = errno;
    // What O_DIRECTORY and O_NOFOLLOW say differs between systems and file systems.
    if (error == ENOTDIR || error == ELOOP || error == EMLINK) {
      return refused(name, "is not a directory, or is a symbolic link");
    }
    return failed("cannot open", name, error);
  }
  return FileDescriptor(descriptor);
}

Outcome<FileDescriptor> check_directory(int descriptor, const std::string& name, Access access) {
  auto opened = opened_directory(descriptor, name);
  const auto* directory = std::get_if<FileDescriptor>(&opened);
  if (!directory) return opened;
  struct stat status {};
  if (fstat(directory->get(), &status) != 0) return failed("cannot examine", name, errno);
  if (const std::string reason = distrust(status); !reason.empty()) return refused(name, reason);
  if (access != Access::read && !is_own(status)) {
    return Problem{Problem::Kind::foreign, 0,
                   name + " belongs to root: its entries are used, none is stored or removed"};
  }
  return opened;
}

/// 0 or errno.
int make_directories(const std::string& path, mode_t mode) {
  if (mkdir(path.c_str(), mode) == 0 || errno == EEXIST) return 0;
  if (errno != ENOENT) return errno;
  const std::size_t slash = path.rfind('/');
  const std::size_t parent = slash == std::string::npos ? slash : path.find_last_not_of('/', slash);
  if (parent == std::string::npos) return ENOENT;
  if (const int error = make_directories(path.substr(0, parent + 1), mode); error != 0) return error;
  return mkdir(path.c_str(), mode) == 0 || errno == EEXIST ? 0 : errno;
}

int open_path(const std::string& path) {
  return retry_interrupted([&] { return open(path.c_str(), kDirectoryFlags); });
}

FileIdentity identity_of(const struct stat& status) {
  // Any 64-bit time can be set on a file; those before 1970 or after 2255 do not fit in nanoseconds.
  const std::int64_t seconds = std::clamp<std::int64_t>(status.st_mtim.tv_sec, 0, 9'000'000'000);
  return {static_cast<std::uint64_t>(status.st_dev), static_cast<std::uint64_t>(status.st_ino),
          static_cast<std::uint64_t>(status.st_size), seconds * 1'000'000'000 + status.st_mtim.tv_nsec};
}

/// 0 or errno.
int sync(const FileDescriptor& file) {
  if (retry_interrupted([&] { return fsync(file.get()); }) == 0) return 0;
  // A file system that has nothing to flush says so; the digest covers the rest.
  return errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP ? 0 : errno;
}

}  // namespace

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

FileDescriptor::~FileDescriptor() { close(); }

int FileDescriptor::close() {
  const int descriptor = std::exchange(descriptor_, -1);
  if (descriptor < 0 || ::close(descriptor) == 0) return 0;
  // Linux has released the descriptor even when it reports an interruption; closing again could hit another thread's.
  return errno == EINTR ? 0 : errno;
}

std::string without_trailing_slashes(std::string path) {
  while (path.size() > 1 && (path.back() == '/' || path.ends_with("/."))) path.pop_back();
  return path;
}

Outcome<FileDescriptor> open_root(const std::string& path, Access access) {
  int descriptor = open_path(path);
  if (descriptor < 0 && errno == ENOENT && access == Access::create) {
    if (const int error = make_directories(path, kPrivateDirectory); error != 0) {
      return failed("cannot create", path, error);
    }
    descriptor = open_path(path);
  }
  return check_directory(descriptor, path, access);
}

Outcome<FileDescriptor> open_public_directory(const std::string& path) {
  if (const int error = make_directories(path, kPublicDirectory); error != 0) {
    return failed("cannot create", path, error);
  }
  return opened_directory(open_path(path), path);
}

Outcome<FileDescriptor> open_directory(const FileDescriptor& parent, const std::string& name, Access access) {
  const auto open_it = [&] {
    return retry_interrupted([&] { return openat(parent.get(), name.c_str(), kDirectoryFlags); });
  };
  int descriptor = open_it();
  if (descriptor < 0 && errno == ENOENT && access == Access::create) {
    if (mkdirat(parent.get(), name.c_str(), kPrivateDirectory) != 0 && errno != EEXIST) {
      return failed("cannot create", name, errno);
    }
    descriptor = open_it();
  }
  return check_directory(descriptor, name, access);
}

Outcome<OpenFile> open_file(const FileDescriptor& directory, const std::string& name) {
  // Without O_NONBLOCK a FIFO of this name would hold us until somebody writes to it.
  const int descriptor = retry_interrupted(
      [&] { return openat(directory.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC); });
  if (descriptor < 0) {
    const int error = errno;
    if (error == ELOOP || error == EMLINK) return refused(name, "is a symbolic link");
    return failed("cannot open", name, error);
  }
  FileDescriptor file(descriptor);
  struct stat status {};
  if (fstat(file.get(), &status) != 0) return failed("cannot examine", name, errno);
  if (!S_ISREG(status.st_mode)) return refused(name, "is not a regular file");
  if (const std::string reason = distrust(status); !reason.empty()) return refused(name, reason);
  return OpenFile{std::move(file), identity_of(status), is_own(status)};
}

std::optional<Problem> read_exactly(const FileDescriptor& file, char* buffer, std::size_t bytes) {
  while (bytes > 0) {
    const ssize_t got = retry_interrupted([&] { return ::read(file.get(), buffer, bytes); });
    if (got < 0) return failed("cannot read", "an entry", errno);
    if (got == 0) return Problem{Problem::Kind::failed, EIO, "an entry became shorter while it was read"};
    buffer += got;
    bytes -= static_cast<std::size_t>(got);
  }
  return std::nullopt;
}

std::optional<Problem> publish_file(const FileDescriptor& directory, const std::string& temporary,
                                    const std::string& name, std::string_view bytes, Readers readers) {
  const mode_t mode = readers == Readers::owner ? kPrivateFile : kPublicFile;
  const int descriptor = retry_interrupted([&] {
    return openat(directory.get(), temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
  });
  if (descriptor < 0) return failed("cannot create", temporary, errno);
  FileDescriptor file(descriptor);

  std::string_view call = "cannot write";
  int error = write_all(file.get(), bytes);
  if (error == 0) error = sync(file);
  // Some file systems report a full disk or a lost server only here.
  if (const int close_error = file.close(); error == 0) error = close_error;
  if (error == 0 && renameat(directory.get(), temporary.c_str(), directory.get(), name.c_str()) != 0) {
    error = errno;
    call = "cannot rename";
  }
  if (error == 0) return std::nullopt;
  unlinkat(directory.get(), temporary.c_str(), 0);
  return failed(call, temporary, error);
}

Outcome<FileStatus> examine(const FileDescriptor& directory, const std::string& name) {
  struct stat status {};
  if (fstatat(directory.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
    return failed("cannot examine", name, errno);
  }
  return FileStatus{identity_of(status), S_ISREG(status.st_mode) != 0};
}

Outcome<bool> remove_unchanged(const FileDescriptor& directory, const std::string& name, const FileIdentity& identity) {
  auto status = examine(directory, name);
  if (auto* problem = std::get_if<Problem>(&status)) return std::move(*problem);
  if (std::get<FileStatus>(status).identity != identity) return false;
  if (unlinkat(directory.get(), name.c_str(), 0) != 0) return failed("cannot remove", name, errno);
  return true;
}

std::optional<Problem> for_each_name(const FileDescriptor& directory,
                                     const std::function<void(const std::string&)>& visit) {
  // A descriptor of its own, because the position in the listing belongs to the open file and closedir() closes it.
  const int descriptor = retry_interrupted([&] { return openat(directory.get(), ".", kDirectoryFlags); });
  if (descriptor < 0) return failed("cannot list", "a directory", errno);
  const auto close_listing = [](DIR* listing) { closedir(listing); };
  const std::unique_ptr<DIR, decltype(close_listing)> listing(fdopendir(descriptor), close_listing);
  if (!listing) {
    const int error = errno;
    ::close(descriptor);
    return failed("cannot list", "a directory", error);
  }
  errno = 0;
  while (const dirent* item = readdir(listing.get())) {
    const std::string name = item->d_name;
    if (name != "." && name != "..") visit(name);
    errno = 0;
  }
  if (errno != 0) return failed("cannot list", "a directory", errno);
  return std::nullopt;
}

void touch(const FileDescriptor& file) {
  // The server's clock, not ours, where they differ.
  const struct timespec now[2] = {{0, UTIME_NOW}, {0, UTIME_NOW}};
  static_cast<void>(futimens(file.get(), now));
}

std::int64_t now_ns() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

bool in_future(std::int64_t time_ns, std::int64_t now) {
  constexpr std::int64_t kHourNs = std::int64_t{3600} * 1'000'000'000;
  return time_ns - now > kHourNs;
}

std::uint64_t random_number() {
  std::uint64_t number = 0;
  if (getrandom(&number, sizeof number, GRND_NONBLOCK) == static_cast<ssize_t>(sizeof number)) return number;
  // Early in the life of a machine there may be no randomness yet. Unique is enough: O_EXCL catches the rest.
  static std::atomic<std::uint64_t> calls{0};
  return static_cast<std::uint64_t>(now_ns()) * 0x9e3779b97f4a7c15u + (++calls << 32) +
         static_cast<std::uint64_t>(getpid());
}

}  // namespace jitconv::cache
