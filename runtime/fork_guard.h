// Neither a CUDA context nor NVRTC's threads survive fork(), and a lock held by another thread at that moment stays
// locked in the child for ever: of the registry, the cache, host execution. So a child of a process that has used
// jitconv is told so instead of left to hang, wherever its kernels run: one rule, whatever other threads were doing.
#pragma once

namespace jitconv::runtime {

/// From now on a child made by fork() is refused. Called before the first use of the driver, NVRTC or the registry.
void forbid_use_after_fork();

/// Whether this is such a child.
bool is_forked_after_use() noexcept;

/// Throws CudaError (no_driver) in such a child; costs one load elsewhere.
void refuse_after_fork();

}  // namespace jitconv::runtime
