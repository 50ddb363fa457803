// Stacks of their own for the threads of a block, and the switch between them and the scheduler. Only switches: who
// runs next is block.cpp's decision. A fiber is entered from the stack that called resume() and returns to it with
// yield().
#pragma once

#include <cstddef>

namespace jitconv::host {

/// Equal stacks in one mapping, each below an unmapped page that turns an overflow into a fault.
class Stacks {
 public:
  explicit Stacks(std::size_t count);
  ~Stacks();
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;

  static constexpr std::size_t kBytes = 128 * 1024;  ///< of one stack
  char* lowest(std::size_t index) const;

 private:
  std::size_t mapped_bytes_ = 0;
  char* base_ = nullptr;
};

class Fiber {
 public:
  using Entry = void (*)(void* argument);

  Fiber() = default;
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// The next resume() calls `entry` on the stack [low, low + bytes). Whatever the fiber was doing is dropped without
  /// unwinding. `entry` must not return; its last act is finish().
  void start(char* low, std::size_t bytes, Entry entry, void* argument);

  /// From outside: runs the fiber until it yields.
  void resume();
  /// From inside: back to the caller of resume().
  void yield();
  /// The same for good: the next thing to happen to the fiber is start().
  void finish();

 private:
  [[noreturn]] static void run(void* self);
  void leave(void** fake_stack);

  void* own_stack_pointer_ = nullptr;
  void* outer_stack_pointer_ = nullptr;
  Entry entry_ = nullptr;
  void* argument_ = nullptr;
  char* low_ = nullptr;
  std::size_t bytes_ = 0;
  // For AddressSanitizer, which follows a program from stack to stack only if it is told.
  [[maybe_unused]] const void* outer_low_ = nullptr;
  [[maybe_unused]] std::size_t outer_bytes_ = 0;
  [[maybe_unused]] void* outer_fake_stack_ = nullptr;
  void* own_fake_stack_ = nullptr;
};

}  // namespace jitconv::host
