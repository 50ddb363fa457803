// The CUDA a kernel is compiled against on the CPU: keywords, built-in variables and types, and the way into the
// engine. Pasted before every kernel, after module_abi.h, so it includes nothing; the functions are in builtins.h. The
// compiler's own instrumentation calls the functions at the end of this file: -fsanitize=thread for every load and
// store that is not to a register or the stack, -fsanitize=undefined for arithmetic, -fsanitize-coverage for basic
// blocks. None of the sanitizers' libraries is linked.
#pragma once

// Functions that are no part of the kernel: not instrumented, and never inlined, because their return address is the
// place in the kernel that a finding names.
#if defined(__clang__)
#define JITCONV_PLAIN __attribute__((noinline, disable_sanitizer_instrumentation, no_sanitize("undefined", "coverage")))
#elif __GNUC__ >= 12
#define JITCONV_PLAIN __attribute__((noinline, no_sanitize_thread, no_sanitize_undefined, no_sanitize_coverage))
#else
#define JITCONV_PLAIN __attribute__((noinline, no_sanitize_thread, no_sanitize_undefined))
#endif
#define JITCONV_HOOK extern "C" __attribute__((visibility("hidden"), used)) JITCONV_PLAIN
#define JITCONV_INLINE inline __attribute__((always_inline))
#define JITCONV_PC __builtin_return_address(0)

#define __device__
#define __host__
#define __constant__ const
#define __grid_constant__
#define __global__ __attribute__((noinline))
#define __forceinline__ JITCONV_INLINE
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
// Dynamic shared memory is the symbol `shared`; the translation refuses every other use of the word.
#define __shared__

#if defined(JITCONV_COUNTING)
#define JITCONV_COUNTS 1
#else
#define JITCONV_COUNTS 0
#endif
extern "C" {
#pragma GCC visibility push(hidden)
const jitconv_host_api* jitconv_api;
jitconv_host_thread* jitconv_thread;
unsigned long long jitconv_fma_count;
__attribute__((aligned(1024))) char jitconv_shared_memory[JITCONV_HOST_SHARED_BYTES];
#pragma GCC visibility pop
extern const jitconv_host_module jitconv_host_module_table;
const jitconv_host_module jitconv_host_module_table = {JITCONV_HOST_ABI, JITCONV_COUNTS,     &jitconv_api,
                                                       &jitconv_thread,  &jitconv_fma_count, jitconv_shared_memory};
}
// The same memory under the name that kernels use, with an element type of their own.
asm(".globl shared\n"
    ".hidden shared\n"
    ".set shared, jitconv_shared_memory\n");

// Functions, since the variables behind them are no memory of the kernel; const, since a call of the kernel is one
// thread.
#define JITCONV_THREAD_VALUE(member) \
  JITCONV_HOOK __attribute__((const)) jitconv_host_dim3 jitconv_##member() { return jitconv_thread->member; }
JITCONV_THREAD_VALUE(thread_index)
JITCONV_THREAD_VALUE(block_index)
JITCONV_THREAD_VALUE(block_dim)
JITCONV_THREAD_VALUE(grid_dim)
#define threadIdx (jitconv_thread_index())
#define blockIdx (jitconv_block_index())
#define blockDim (jitconv_block_dim())
#define gridDim (jitconv_grid_dim())
#define warpSize 32

// --- what the compiler inserts ---------------------------------------------------------------------------------------

#define JITCONV_ACCESS(bytes)                                                                                      \
  JITCONV_HOOK void __tsan_read##bytes(void* address) { jitconv_api->load(address, bytes, JITCONV_PC); }           \
  JITCONV_HOOK void __tsan_write##bytes(void* address) { jitconv_api->store(address, bytes, JITCONV_PC); }         \
  JITCONV_HOOK void __tsan_unaligned_read##bytes(void* address) { jitconv_api->load(address, bytes, JITCONV_PC); } \
  JITCONV_HOOK void __tsan_unaligned_write##bytes(void* address) { jitconv_api->store(address, bytes, JITCONV_PC); }
JITCONV_ACCESS(1)
JITCONV_ACCESS(2)
JITCONV_ACCESS(4)
JITCONV_ACCESS(8)
JITCONV_ACCESS(16)
JITCONV_HOOK void __tsan_read_range(void* address, unsigned long bytes) {
  jitconv_api->load(address, static_cast<unsigned>(bytes), JITCONV_PC);
}
JITCONV_HOOK void __tsan_write_range(void* address, unsigned long bytes) {
  jitconv_api->store(address, static_cast<unsigned>(bytes), JITCONV_PC);
}
// clang: one load and one store of the same address.
#define JITCONV_ACCESS_BOTH(bytes)                                      \
  JITCONV_HOOK void __tsan_read_write##bytes(void* address) {           \
    jitconv_api->load(address, bytes, JITCONV_PC);                      \
    jitconv_api->store(address, bytes, JITCONV_PC);                     \
  }                                                                     \
  JITCONV_HOOK void __tsan_unaligned_read_write##bytes(void* address) { \
    jitconv_api->load(address, bytes, JITCONV_PC);                      \
    jitconv_api->store(address, bytes, JITCONV_PC);                     \
  }
JITCONV_ACCESS_BOTH(1)
JITCONV_ACCESS_BOTH(2)
JITCONV_ACCESS_BOTH(4)
JITCONV_ACCESS_BOTH(8)
JITCONV_ACCESS_BOTH(16)
JITCONV_HOOK void __tsan_init() {}
JITCONV_HOOK void __tsan_func_entry(void*) {}
JITCONV_HOOK void __tsan_func_exit() {}

// Copies and fills that the compiler makes of assignments and loops. The library's own would go unseen. The empty asm
// keeps the compiler from finding the function it is compiling in the loop; .hidden does what the attribute cannot for
// functions the compiler declares itself.
asm(".hidden memset\n"
    ".hidden memmove\n"
    ".hidden memcpy\n");
JITCONV_HOOK void* memset(void* to, int value, unsigned long bytes) {
  if (bytes > 0) jitconv_api->store(to, static_cast<unsigned>(bytes), JITCONV_PC);
  for (unsigned long i = 0; i < bytes; ++i) {
    static_cast<char*>(to)[i] = static_cast<char>(value);
    asm volatile("" ::: "memory");
  }
  return to;
}
JITCONV_HOOK void* memmove(void* to, const void* from, unsigned long bytes) {
  if (bytes > 0) {
    jitconv_api->load(from, static_cast<unsigned>(bytes), JITCONV_PC);
    jitconv_api->store(to, static_cast<unsigned>(bytes), JITCONV_PC);
  }
  const bool up = to < from;
  for (unsigned long i = 0; i < bytes; ++i) {
    const unsigned long at = up ? i : bytes - 1 - i;
    static_cast<char*>(to)[at] = static_cast<const char*>(from)[at];
    asm volatile("" ::: "memory");
  }
  return to;
}
JITCONV_HOOK void* memcpy(void* to, const void* from, unsigned long bytes) {
  if (bytes > 0) {
    jitconv_api->load(from, static_cast<unsigned>(bytes), JITCONV_PC);
    jitconv_api->store(to, static_cast<unsigned>(bytes), JITCONV_PC);
  }
  for (unsigned long i = 0; i < bytes; ++i) {
    static_cast<char*>(to)[i] = static_cast<const char*>(from)[i];
    asm volatile("" ::: "memory");
  }
  return to;
}

#if defined(JITCONV_COUNTING)
// The compiler's own constructor has blocks too, and runs before there is an engine.
JITCONV_HOOK void __sanitizer_cov_trace_pc() {
  if (jitconv_api != nullptr) jitconv_api->basic_block(JITCONV_PC);
}
JITCONV_HOOK void jitconv_count_fma() { ++jitconv_fma_count; }
#endif
