// A flag set by pthread_atfork's child handler. See fork_guard.h.
#include "runtime/fork_guard.h"

#include <pthread.h>

#include <atomic>

#include "jitconv/error.h"

namespace jitconv::runtime {
namespace {

std::atomic<bool> forked_after_use{false};

}  // namespace

void forbid_use_after_fork() {
  static const int registered =
      pthread_atfork(nullptr, nullptr, [] { forked_after_use.store(true, std::memory_order_relaxed); });
  if (registered != 0) throw InternalError("pthread_atfork failed: out of memory");
}

void refuse_after_fork() {
  if (!forked_after_use.load(std::memory_order_relaxed)) [[likely]]
    return;
  throw CudaError(
      ErrorCode::no_driver, 0, "fork",
      "this process was forked from one that had already used jitconv, and neither the CUDA driver, nor NVRTC, "
      "nor a lock that another thread held survives fork(): start worker processes with spawn (fork and "
      "exec) instead");
}

}  // namespace jitconv::runtime
