// The counts of uses and what waits for them, under one mutex. See compiler_use.h.
#include "runtime/compiler_use.h"

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <new>

#include "jitconv/error.h"

namespace jitconv::runtime {
namespace {

constexpr std::chrono::seconds kLongestWait{60};

struct State {
  std::mutex mutex;
  std::condition_variable changed;
  int uses = 0;     ///< of all threads, nested ones counted once
  int loading = 0;  ///< of these, those that load a library
  int forks = 0;    ///< threads between hold_uses() and the release
  bool exiting = false;
};

/// Never destroyed: static objects of the program may compile while they are destroyed.
State& state() {
  static State& instance = *new State;
  return instance;
}

/// A thread that forks or exits in the middle of its own use does not wait for itself.
thread_local int depth = 0;

int own_uses() { return depth > 0 ? 1 : 0; }

[[noreturn]] void throw_exiting() {
  throw CompileError(ErrorCode::compile_failed,
                     "the process is exiting, and no compiler can be used any more: compile before main() returns or "
                     "exit() is called");
}

void finish_uses() noexcept {
  std::unique_lock lock(state().mutex);
  state().exiting = true;
  state().changed.notify_all();
  state().changed.wait_for(lock, kLongestWait, [] { return state().uses - state().loading <= own_uses(); });
}

}  // namespace

CompilerUse::CompilerUse() {
  if (depth == 0) {
    static const bool waits_at_exit = (finish_uses_at_exit(), true);
    static_cast<void>(waits_at_exit);
    State& shared = state();
    std::unique_lock lock(shared.mutex);
    shared.changed.wait(lock, [&shared] { return shared.forks == 0 || shared.exiting; });
    if (shared.exiting) throw_exiting();
    ++shared.uses;
  }
  ++depth;
}

CompilerUse::~CompilerUse() {
  if (--depth > 0) return;
  State& shared = state();
  const std::lock_guard lock(shared.mutex);
  --shared.uses;
  shared.changed.notify_all();
}

LibraryLoading::LibraryLoading() {
  const std::lock_guard lock(state().mutex);
  if (state().exiting) throw_exiting();
  ++state().loading;
  state().changed.notify_all();
}

LibraryLoading::~LibraryLoading() {
  const std::lock_guard lock(state().mutex);
  --state().loading;
}

void refuse_while_exiting() {
  const std::lock_guard lock(state().mutex);
  if (state().exiting) throw_exiting();
}

void finish_uses_at_exit() {
  if (std::atexit([] { finish_uses(); }) != 0) throw InternalError("atexit failed: out of memory");
}

void hold_uses() noexcept {
  std::unique_lock lock(state().mutex);
  ++state().forks;
  state().changed.wait_for(lock, kLongestWait, [] { return state().uses <= own_uses(); });
  lock.release();  // locked until the fork is done
}

void release_uses_in_parent() noexcept {
  const std::lock_guard lock(state().mutex, std::adopt_lock);
  --state().forks;
  state().changed.notify_all();
}

void release_uses_in_child() noexcept {
  const std::lock_guard lock(state().mutex, std::adopt_lock);
  // The condition variable remembers waiters of the parent: a later notify_all() here would wait for them for ever, and
  // so would its destructor. So a new one takes its place.
  ::new (&state().changed) std::condition_variable;
  state().forks = 0;
  state().uses = own_uses();
  state().loading = 0;
}

}  // namespace jitconv::runtime
