// The handlers given to pthread_atfork: a flag set in the child, and a wait for compilers. See fork_guard.h.
#include "runtime/fork_guard.h"

#include <pthread.h>

#include <atomic>

#include "jitconv/error.h"
#include "runtime/compiler_use.h"

namespace jitconv::runtime {
namespace {

std::atomic<bool> forked_after_use{false};

}  // namespace

void forbid_use_after_fork() {
  static const int registered = pthread_atfork(hold_uses, release_uses_in_parent, [] {
    forked_after_use.store(true, std::memory_order_relaxed);
    release_uses_in_child();
  });
  if (registered != 0) throw InternalError("pthread_atfork failed: out of memory");
}

bool is_forked_after_use() noexcept { return forked_after_use.load(std::memory_order_relaxed); }

void refuse_after_fork() {
  if (!is_forked_after_use()) [[likely]]
    return;
  throw CudaError(
      ErrorCode::no_driver, 0, "fork",
      "this process was forked from one that had already used jitconv, and neither the CUDA driver, nor NVRTC, "
      "nor a lock that another thread held survives fork(): start worker processes with spawn (fork and "
      "exec) instead");
}

}  // namespace jitconv::runtime
