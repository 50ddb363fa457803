// See write_all.h.
#include "cache/write_all.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

namespace jitconv::cache {
namespace {

/// Keeps the signals that a write may raise, for a pipe without a reader or a file at its limit, from ending the
/// process. They go to the thread that writes, so other threads and the program's own handlers never see them.
class HeldSignals {
 public:
  HeldSignals() {
    sigemptyset(&signals_);
    for (const int signal : kRaised) sigaddset(&signals_, signal);
    sigpending(&pending_before_);
    pthread_sigmask(SIG_BLOCK, &signals_, &mask_before_);
  }
  ~HeldSignals() {
    // Signals that were pending before are the program's; what the write raised is taken back.
    for (const int signal : kRaised)
      if (sigismember(&pending_before_, signal) == 1) sigdelset(&signals_, signal);
    const timespec now{};
    while (sigtimedwait(&signals_, nullptr, &now) > 0 || errno == EINTR) {
    }
    pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
  }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

 private:
  static constexpr int kRaised[] = {SIGPIPE, SIGXFSZ};

  sigset_t signals_{}, pending_before_{}, mask_before_{};
};

}  // namespace

int write_all(int descriptor, std::string_view bytes) {
  const HeldSignals held;
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    if (written == 0) return EIO;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

int write_once(int descriptor, std::string_view bytes) {
  const HeldSignals held;
  ssize_t written = 0;
  do {
    written = ::write(descriptor, bytes.data(), bytes.size());
  } while (written < 0 && errno == EINTR);
  if (written < 0) return errno;
  return written == static_cast<ssize_t>(bytes.size()) ? 0 : EIO;
}

}  // namespace jitconv::cache
