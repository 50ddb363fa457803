// See write_all.h.
#include "cache/write_all.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

namespace jitconv::cache {
namespace {

/// While it lives, a write of this thread past RLIMIT_FSIZE fails with EFBIG and nothing else. The signal goes to the
/// thread that writes, so other threads and the program's own handler never see it.
class NoFileSizeSignal {
 public:
  NoFileSizeSignal() {
    sigemptyset(&signal_);
    sigaddset(&signal_, SIGXFSZ);
    pending_before_ = is_pending();
    pthread_sigmask(SIG_BLOCK, &signal_, &mask_before_);
  }
  ~NoFileSizeSignal() {
    const timespec no_wait{};
    while (!pending_before_ && is_pending() && sigtimedwait(&signal_, nullptr, &no_wait) < 0 && errno == EINTR) {
    }
    pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
  }
  NoFileSizeSignal(const NoFileSizeSignal&) = delete;
  NoFileSizeSignal& operator=(const NoFileSizeSignal&) = delete;

 private:
  static bool is_pending() {
    sigset_t pending;
    return sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
  }

  sigset_t signal_{}, mask_before_{};
  bool pending_before_ = false;
};

}  // namespace

int write_all(int descriptor, std::string_view bytes) {
  const NoFileSizeSignal guard;
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    if (written == 0) return EIO;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

}  // namespace jitconv::cache
