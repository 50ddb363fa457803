// Descriptors rather than C's streams: nothing is buffered, so every failure shows where it happens.
#include "tools/output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <llvm/Support/raw_ostream.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "tools/tool.h"

namespace jitconv::tools {
namespace {

/// Where stderr is while it is captured.
int real_stderr = STDERR_FILENO;

[[noreturn]] void fail(const std::string& path, int error) {
  throw ToolError(kCheckFailed, fmt::format("cannot write {}: {}", path, std::strerror(error)));
}

/// 0 or what errno was.
int write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

bool is_regular(int descriptor) {
  struct stat status {};
  return ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
}

/// At exit, before LLVM's streams are destroyed: their destructors abort the program if a write has failed.
void report_failed_streams() {
  llvm::errs().clear_error();
  llvm::outs().flush();
  if (!llvm::outs().has_error()) return;
  write_error(
      fmt::format("{}: cannot write stdout: {}\n", program_invocation_short_name, llvm::outs().error().message()));
  llvm::outs().clear_error();
  ::_exit(kCheckFailed);
}

}  // namespace

OutputFile::OutputFile(std::string path) : path_(std::move(path)) {
  if (path_.empty() || path_ == "-") {
    path_ = "stdout";
    descriptor_ = STDOUT_FILENO;
    const int flags = ::fcntl(descriptor_, F_GETFL);
    if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY) fail(path_, EBADF);
    return;
  }
  is_new_ = ::access(path_.c_str(), F_OK) != 0;
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail(path_, errno);
}

OutputFile::~OutputFile() {
  if (descriptor_ == STDOUT_FILENO) return;
  ::close(descriptor_);
  if (is_new_ && !written_) ::unlink(path_.c_str());
}

void OutputFile::write(std::string_view text) {
  written_ = true;
  if (descriptor_ != STDOUT_FILENO && is_regular(descriptor_) &&
      (::lseek(descriptor_, 0, SEEK_SET) != 0 || ::ftruncate(descriptor_, 0) != 0))
    fail(path_, errno);
  if (const int error = write_all(descriptor_, text); error != 0) fail(path_, error);
}

void write_output(const std::string& path, std::string_view text) { OutputFile(path).write(text); }

void write_error(std::string_view text) { static_cast<void>(write_all(real_stderr, text)); }

CapturedStderr::CapturedStderr() : file_(std::tmpfile()) {
  if (file_ == nullptr) return;
  const int saved = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
  if (saved < 0) return;
  real_stderr = saved;
  ::dup2(fileno(file_), STDERR_FILENO);
}

std::string CapturedStderr::finish() {
  std::string text;
  if (file_ == nullptr) return text;
  if (real_stderr != STDERR_FILENO) {
    ::dup2(real_stderr, STDERR_FILENO);
    ::close(real_stderr);
    real_stderr = STDERR_FILENO;
  }
  std::rewind(file_);
  for (int c = std::fgetc(file_); c != EOF; c = std::fgetc(file_)) text += static_cast<char>(c);
  std::fclose(file_);
  file_ = nullptr;
  return text;
}

void prepare_standard_streams() {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(descriptor, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest free number is this one. Read-only, so that writing to stdout fails as it would have.
    static_cast<void>(::open("/dev/null", descriptor == STDERR_FILENO ? O_WRONLY : O_RDONLY));
  }
  std::signal(SIGXFSZ, SIG_IGN);
  // Made now, so that what is registered next runs before they are destroyed.
  llvm::outs();
  llvm::errs();
  std::atexit(report_failed_streams);
}

}  // namespace jitconv::tools
