// The switch itself: a dozen instructions on x86-64 and aarch64, ucontext elsewhere. Saved are the registers a function
// must preserve; the floating-point control words are not, since neither kernels nor the engine change them.
#include "host/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <new>

#if !defined(__x86_64__) && !defined(__aarch64__)
#include <ucontext.h>
#define JITCONV_UCONTEXT 1
#endif

#if defined(__SANITIZE_ADDRESS__)
#define JITCONV_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define JITCONV_ADDRESS_SANITIZER 1
#endif
#endif
#if defined(JITCONV_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

// Stores the stack pointer to *save after pushing the preserved registers, and continues where `load` was saved.
extern "C" __attribute__((visibility("hidden"))) void jitconv_host_switch_stack(void** save, void* load);
// Where a new stack begins: calls the function in one preserved register with the argument in another.
extern "C" __attribute__((visibility("hidden"))) void jitconv_host_enter_stack();

#if defined(__x86_64__)
asm(R"(
.pushsection .text
.globl jitconv_host_switch_stack
.hidden jitconv_host_switch_stack
.type jitconv_host_switch_stack, @function
jitconv_host_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size jitconv_host_switch_stack, . - jitconv_host_switch_stack
.globl jitconv_host_enter_stack
.hidden jitconv_host_enter_stack
.type jitconv_host_enter_stack, @function
jitconv_host_enter_stack:
  movq %r12, %rdi
  callq *%r13
  ud2
.size jitconv_host_enter_stack, . - jitconv_host_enter_stack
.popsection
)");
#elif defined(__aarch64__)
asm(R"(
.pushsection .text
.globl jitconv_host_switch_stack
.hidden jitconv_host_switch_stack
.type jitconv_host_switch_stack, %function
jitconv_host_switch_stack:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size jitconv_host_switch_stack, . - jitconv_host_switch_stack
.globl jitconv_host_enter_stack
.hidden jitconv_host_enter_stack
.type jitconv_host_enter_stack, %function
jitconv_host_enter_stack:
  mov x0, x19
  blr x20
  brk #1
.size jitconv_host_enter_stack, . - jitconv_host_enter_stack
.popsection
)");
#endif

namespace jitconv::host {
namespace {

std::size_t page_bytes() {
  static const std::size_t bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

#if defined(JITCONV_UCONTEXT)
// The saved "stack pointer" is a context at the low end of the stack it belongs to, or one of the outer stack's frame.
struct EntryAndArgument {
  void (*entry)(void*);
  void* argument;
};
void enter(unsigned high, unsigned low) {
  const auto* start = reinterpret_cast<const EntryAndArgument*>((std::uintptr_t{high} << 16 << 16) | low);
  start->entry(start->argument);
  std::abort();
}

void* new_stack(char* low, std::size_t bytes, void (*entry)(void*), void* argument) {
  auto* context = new (low) ucontext_t;
  auto* start = new (low + sizeof(ucontext_t)) EntryAndArgument{entry, argument};
  constexpr std::size_t kHeader = (sizeof(ucontext_t) + sizeof(EntryAndArgument) + 15) / 16 * 16;
  if (getcontext(context) != 0) std::abort();
  context->uc_stack.ss_sp = low + kHeader;
  context->uc_stack.ss_size = bytes - kHeader;
  context->uc_link = nullptr;
  const auto address = reinterpret_cast<std::uintptr_t>(start);
  makecontext(context, reinterpret_cast<void (*)()>(enter), 2, static_cast<unsigned>(address >> 16 >> 16),
              static_cast<unsigned>(address));
  return context;
}

void switch_stack(void** save, void* load) {
  ucontext_t here;
  *save = &here;
  if (swapcontext(&here, static_cast<ucontext_t*>(load)) != 0) std::abort();
}
#else
void* new_stack(char* low, std::size_t bytes, void (*entry)(void*), void* argument) {
  // What jitconv_host_switch_stack() pops first, lowest address first. The zeros above it end a debugger's walk.
  auto top = reinterpret_cast<std::uintptr_t>(low + bytes) & ~std::uintptr_t{15};
  void** slots = reinterpret_cast<void**>(top);
#if defined(__x86_64__)
  *--slots = nullptr;
  *--slots = nullptr;
  *--slots = reinterpret_cast<void*>(&jitconv_host_enter_stack);  // ret
  *--slots = nullptr;                                             // rbp
  *--slots = nullptr;                                             // rbx
  *--slots = argument;                                            // r12
  *--slots = reinterpret_cast<void*>(entry);                      // r13
  *--slots = nullptr;                                             // r14
  *--slots = nullptr;                                             // r15
#else
  slots -= 20;
  for (int i = 0; i < 20; ++i) slots[i] = nullptr;
  slots[0] = argument;                                             // x19
  slots[1] = reinterpret_cast<void*>(entry);                       // x20
  slots[11] = reinterpret_cast<void*>(&jitconv_host_enter_stack);  // x30
#endif
  return slots;
}

void switch_stack(void** save, void* load) { jitconv_host_switch_stack(save, load); }
#endif

}  // namespace

Stacks::Stacks(std::size_t count) {
  const std::size_t stride = kBytes + page_bytes();
  mapped_bytes_ = count * stride;
  void* memory =
      mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  base_ = static_cast<char*>(memory);
  for (std::size_t i = 0; i < count; ++i)
    if (mprotect(base_ + i * stride, page_bytes(), PROT_NONE) != 0) {
      munmap(base_, mapped_bytes_);
      throw std::bad_alloc();
    }
}

Stacks::~Stacks() {
#if defined(JITCONV_ADDRESS_SANITIZER)
  ASAN_UNPOISON_MEMORY_REGION(base_, mapped_bytes_);  // frames that were dropped left their red zones behind
#endif
  munmap(base_, mapped_bytes_);
}

char* Stacks::lowest(std::size_t index) const { return base_ + index * (kBytes + page_bytes()) + page_bytes(); }

void Fiber::start(char* low, std::size_t bytes, Entry entry, void* argument) {
  entry_ = entry;
  argument_ = argument;
  low_ = low;
  bytes_ = bytes;
#if defined(JITCONV_ADDRESS_SANITIZER)
  ASAN_UNPOISON_MEMORY_REGION(low, bytes);
#endif
  own_stack_pointer_ = new_stack(low, bytes, &Fiber::run, this);
}

void Fiber::run(void* self) {
  Fiber& fiber = *static_cast<Fiber*>(self);
#if defined(JITCONV_ADDRESS_SANITIZER)
  __sanitizer_finish_switch_fiber(fiber.own_fake_stack_, &fiber.outer_low_, &fiber.outer_bytes_);
#endif
  fiber.entry_(fiber.argument_);
  std::abort();
}

void Fiber::resume() {
#if defined(JITCONV_ADDRESS_SANITIZER)
  __sanitizer_start_switch_fiber(&outer_fake_stack_, low_, bytes_);
#endif
  switch_stack(&outer_stack_pointer_, own_stack_pointer_);
#if defined(JITCONV_ADDRESS_SANITIZER)
  __sanitizer_finish_switch_fiber(outer_fake_stack_, nullptr, nullptr);
#endif
}

void Fiber::leave([[maybe_unused]] void** fake_stack) {
#if defined(JITCONV_ADDRESS_SANITIZER)
  __sanitizer_start_switch_fiber(fake_stack, outer_low_, outer_bytes_);
#endif
  switch_stack(&own_stack_pointer_, outer_stack_pointer_);
#if defined(JITCONV_ADDRESS_SANITIZER)
  __sanitizer_finish_switch_fiber(own_fake_stack_, &outer_low_, &outer_bytes_);
#endif
}

void Fiber::yield() { leave(&own_fake_stack_); }

void Fiber::finish() {
  own_fake_stack_ = nullptr;
  leave(nullptr);  // no place to keep the sanitizer's second stack in: it is freed
}

}  // namespace jitconv::host
