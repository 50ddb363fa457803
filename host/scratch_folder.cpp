// See scratch_folder.h. A process holds a lock (flock) on the folder it uses. The lock ends with the process, however
// that ends, and shows in other PID namespaces too. So an unlocked folder with our name, mode and user belongs to a
// dead process. Where a file system cannot lock folders, abandoned ones stay.
#include "host/scratch_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "jitconv/error.h"

namespace jitconv::host {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "jitconv-host-", kRandom = "XXXXXX";
constexpr int kFolderFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

bool lock(const cache::FileDescriptor& folder) { return ::flock(folder.get(), LOCK_EX | LOCK_NB) == 0; }

bool is_ours(const cache::FileDescriptor& folder) {
  struct stat status {};
  return ::fstat(folder.get(), &status) == 0 && status.st_uid == ::geteuid() && (status.st_mode & 07777) == 0700;
}

void remove_abandoned(const fs::path& parent) {
  const cache::FileDescriptor directory(::open(parent.c_str(), kFolderFlags & ~O_NOFOLLOW));
  if (directory.get() < 0) return;
  cache::for_each_name(directory, [&](const std::string& name) {
    if (!name.starts_with(kPrefix) || name.size() != kPrefix.size() + kRandom.size()) return;
    const cache::FileDescriptor folder(::openat(directory.get(), name.c_str(), kFolderFlags));
    if (folder.get() < 0 || !is_ours(folder) || !lock(folder)) return;
    std::error_code ignored;
    fs::remove_all(parent / name, ignored);
  });
}

[[noreturn]] void fail(const std::string& name, int error) {
  throw CompileError(ErrorCode::compile_failed, fmt::format("no temporary folder can be made as {} (TMPDIR): {}", name,
                                                            std::generic_category().message(error)));
}

/// Makes a folder, puts its name in place of the Xs and locks it. Nothing if, before it was locked, another process
/// took it for abandoned and removed it.
std::optional<cache::FileDescriptor> make_folder(std::string& name) {
  if (::mkdtemp(name.data()) == nullptr) fail(name, errno);
  cache::FileDescriptor folder(::open(name.c_str(), kFolderFlags));
  if (folder.get() < 0 && errno != ENOENT) {
    const int error = errno;
    ::rmdir(name.c_str());
    fail(name, error);
  }
  const bool taken = folder.get() < 0 || (!lock(folder) && errno == EWOULDBLOCK) || ::access(name.c_str(), F_OK) != 0;
  return taken ? std::nullopt : std::optional(std::move(folder));
}

}  // namespace

ScratchFolder::ScratchFolder() {
  const char* const chosen = ::secure_getenv("TMPDIR");
  const fs::path named = chosen == nullptr || *chosen == '\0' ? "/tmp" : chosen;
  std::error_code error;
  const fs::path parent = fs::absolute(named, error);
  if (error) fail(named, error.value());
  remove_abandoned(parent);
  for (;;) {
    std::string name = parent / fmt::format("{}{}", kPrefix, kRandom);
    if (std::optional<cache::FileDescriptor> locked = make_folder(name)) {
      path_ = name;
      lock_ = std::move(*locked);
      return;
    }
  }
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace jitconv::host
