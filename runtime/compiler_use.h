// Counts the calls into compilers that are in flight, so that fork() and exit() can wait for them. Exit handlers of
// NVRTC destroy what a compiling thread uses and wait for locks it holds, for ever in a child that has no such thread.
// Not a limit on how many compilations run at a time: there is none.
#pragma once

namespace jitconv::runtime {

/// One use of a compiler by the calling thread, from constructor to destructor. Uses of one thread may nest.
class CompilerUse {
 public:
  /// Waits while another thread forks. Throws CompileError (compile_failed) once the process is exiting.
  CompilerUse();
  ~CompilerUse();
  CompilerUse(const CompilerUse&) = delete;
  CompilerUse& operator=(const CompilerUse&) = delete;
};

/// While a thread loads a library, in a CompilerUse of its own: exit() does not wait for it, because handlers that the
/// library has registered by then come first, and would take it down while it waits.
class LibraryLoading {
 public:
  /// Throws CompileError (compile_failed) once the process is exiting: a load that began then would end exit's wait.
  LibraryLoading();
  ~LibraryLoading();
  LibraryLoading(const LibraryLoading&) = delete;
  LibraryLoading& operator=(const LibraryLoading&) = delete;
};

/// Throws what a new CompilerUse would: for a use that began before.
void refuse_while_exiting();

/// From now on exit() waits for the uses in flight, a minute at most, before it runs the exit handlers that are
/// registered so far, and lets no new use begin. Handlers run in reverse order, so this is called again after a library
/// has registered its own.
void finish_uses_at_exit();

/// For pthread_atfork. hold_uses() returns when no other thread uses a compiler, and none does until one of the others
/// is called, in the parent and in the child. It waits a minute at most: fork() must not hang with a compiler.
void hold_uses() noexcept;
void release_uses_in_parent() noexcept;
void release_uses_in_child() noexcept;

}  // namespace jitconv::runtime
