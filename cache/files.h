// The few POSIX calls the store is made of, relative to directory descriptors, because LLVM's Support works on paths.
// Nothing here follows a symbolic link in the last part of a path, maps a file, waits for anybody, or throws for the
// state of a disk.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

struct stat;

namespace jitconv::cache {

/// Owns one descriptor.
class FileDescriptor {
 public:
  explicit FileDescriptor(int descriptor) : descriptor_(descriptor) {}
  FileDescriptor(FileDescriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor();
  int get() const { return descriptor_; }
  /// Closes now; 0 or the errno of close(), which is where some file systems report a failed write.
  int close();

 private:
  int descriptor_;
};

/// Why a file operation gave no result.
struct Problem {
  enum class Kind : std::uint8_t {
    absent,   ///< nothing of that name
    foreign,  ///< it belongs to root and this is another user: it may be read and must not be written
    refused,  ///< there is something, and it must not be trusted
    failed,   ///< the system call failed
  };
  Kind kind = Kind::failed;
  int error = 0;     ///< errno, 0 if foreign or refused
  std::string text;  ///< printable; empty if absent
};

template <class T>
using Outcome = std::variant<T, Problem>;

/// What a directory is opened for.
enum class Access : std::uint8_t {
  read,
  write,   ///< it must belong to the effective user
  create,  ///< as write; it is made if it does not exist
};

enum class Readers : std::uint8_t {
  owner,     ///< mode 0600
  by_umask,  ///< mode 0666 without the bits of the umask
};

/// Tells one version of a file from another.
struct FileIdentity {
  std::uint64_t device = 0, inode = 0;
  std::uint64_t bytes = 0;
  std::int64_t modified_ns = 0;  ///< since 1970
  bool operator==(const FileIdentity&) const = default;
};

struct OpenFile {
  FileDescriptor file;
  FileIdentity identity;
  bool own = false;  ///< the effective user's
};

/// What a name in a directory stands for, links not followed.
struct FileStatus {
  FileIdentity identity;
  bool regular = false;
};

/// Without the "/" and "/." at the end, through which open() would follow a symbolic link.
std::string without_trailing_slashes(std::string path);

/// Opens the root of a store, an absolute path; Access::create makes it and its missing parents with mode 0700. Refuses
/// anything but a directory that the effective user or root owns and nobody else may write to.
Outcome<FileDescriptor> open_root(const std::string& path, Access access);

/// The same for a directory below one that is open.
Outcome<FileDescriptor> open_directory(const FileDescriptor& parent, const std::string& name, Access access);

/// Opens a directory for files that nobody trusts, whoever owns it or may write to it; makes it and its missing parents
/// as the umask says. Refuses a symbolic link.
Outcome<FileDescriptor> open_public_directory(const std::string& path);

/// Opens for reading; refuses anything but a regular file that the effective user or root owns and nobody else may
/// write to.
Outcome<OpenFile> open_file(const FileDescriptor& directory, const std::string& name);

/// Reads exactly `bytes` bytes at the current position; a file that ends earlier is a problem.
std::optional<Problem> read_exactly(const FileDescriptor& file, char* buffer, std::size_t bytes);

/// Writes a new file under `temporary`, which must not exist, forces it to disk and renames it to `name`. What has that
/// name is replaced; if it is a link, the link is replaced and what it leads to is left alone.
std::optional<Problem> publish_file(const FileDescriptor& directory, const std::string& temporary,
                                    const std::string& name, std::string_view bytes, Readers readers = Readers::owner);

Outcome<FileStatus> examine(const FileDescriptor& directory, const std::string& name);

/// Removes `name` if it still is the version given; true if it is gone by this call, false if it is another version.
Outcome<bool> remove_unchanged(const FileDescriptor& directory, const std::string& name, const FileIdentity& identity);

/// Calls `visit` with every name except "." and "..", in no order.
std::optional<Problem> for_each_name(const FileDescriptor& directory,
                                     const std::function<void(const std::string&)>& visit);

/// Sets the modification time to now, if the system lets us.
void touch(const FileDescriptor& file);

/// Nanoseconds since 1970.
std::int64_t now_ns();

/// Whether a file's time is further ahead of `now` than the clocks of machines that share a directory differ.
bool in_future(std::int64_t time_ns, std::int64_t now);

/// 64 bits that differ between threads, processes and forked children.
std::uint64_t random_number();

}  // namespace jitconv::cache
