// The boundary between a compiled kernel module and the engine that runs it: plain C types, shared by both sides. The
// module's half (models/prelude.h) is compiled with every kernel, so this header includes nothing.
#pragma once

// A CUDA thread as the kernel sees it. The engine points the module's jitconv_thread at the running thread's.
struct jitconv_host_dim3 {
  unsigned x, y, z;
};
struct jitconv_host_thread {
  jitconv_host_dim3 thread_index, block_index, block_dim, grid_dim;
};

enum jitconv_host_multiply_type { jitconv_multiply_tf32, jitconv_multiply_f16, jitconv_multiply_bf16 };
// A thread's part of sum[64][columns] += a * b: of `a` and `b` the descriptors, of the sums its own. If `a` comes from
// registers, the thread's four words of it instead. An operand is MN-major whose rows are indices of the reduction.
struct jitconv_host_multiply {
  jitconv_host_multiply_type type;
  float* sum;
  unsigned accumulators;  // columns / 2
  int accumulate;
  unsigned long long a, b;
  const unsigned* a_registers;  // or null
  int a_mn_major, b_mn_major;
};

// A kernel's parameter that is a tensor map (CUtensorMap). Written by the engine; a kernel only hands on its address.
struct alignas(64) jitconv_host_tensor_map {
  const void* tensor;
  unsigned long long parameter;  // its number
  unsigned long long unused[14];
};

// Engine functions a kernel reaches. `pc` is the return address of the call in the kernel: findings turn it into a
// line.
struct jitconv_host_api {
  // Every load and store of the kernel that is not to its own registers or stack; the compiler inserts the calls.
  void (*load)(const void* address, unsigned bytes, const void* pc);
  void (*store)(void* address, unsigned bytes, const void* pc);

  // bar.sync id, threads. threads = 0: all of the block. __syncthreads() is id 0.
  void (*barrier)(unsigned id, unsigned threads, const void* pc);
  // All lanes of `mask` meet: each hands in `bytes` (at most 16) and gets those of all, 32 slots of `bytes` in order of
  // lane. With bytes = 0 a __syncwarp(). Shuffles, votes and matrix instructions of a warp are built on it.
  void (*warp_exchange)(unsigned mask, const void* mine, void* all, unsigned bytes, const void* pc);

  // cp.async: `bytes` (4, 8 or 16) from global to shared memory, or zeros if !valid, in which case source is not read.
  void (*copy_async)(void* destination, const void* source, unsigned bytes, int valid, const void* pc);
  void (*copy_async_commit)(const void* pc);
  void (*copy_async_wait)(unsigned groups_in_flight, const void* pc);

  // mbarrier objects in shared memory. `announced`: bytes of copies that the phase waits for too.
  void (*phase_init)(void* barrier, int arrivals, const void* pc);
  void (*phase_init_visible)(const void* pc);
  void (*phase_arrive)(void* barrier, int announced, const void* pc);
  void (*phase_wait)(void* barrier, int parity, const void* pc);
  // cp.async.bulk: global to shared, completes on a barrier object.
  void (*copy_bulk)(void* destination, const void* source, int bytes, void* barrier, const void* pc);
  // cp.async.bulk.tensor: a box of a tensor, which begins at `rank` indices, at most 4, completes on a barrier object.
  // `offset` has two numbers, right and down, in im2col mode; it is null for a box.
  void (*copy_tensor)(void* destination, const struct jitconv_host_tensor_map* map, const int* indices, unsigned rank,
                      const int* offset, void* barrier, const void* pc);
  // cp.async.bulk: shared to global, in groups of the issuing thread; the wait is for the reads.
  void (*store_bulk)(void* destination, const void* source, int bytes, const void* pc);
  // cp.async.bulk.tensor: shared to global, a box as copy_tensor() lays it out; otherwise as store_bulk().
  void (*store_tensor)(const struct jitconv_host_tensor_map* map, const int* indices, unsigned rank, const void* source,
                       const void* pc);
  void (*store_bulk_commit)(const void* pc);
  void (*store_bulk_wait)(unsigned groups_in_flight, const void* pc);
  void (*fence_async_proxy)(const void* pc);

  // wgmma and setmaxnreg: operations of a warpgroup.
  void (*multiply)(const struct jitconv_host_multiply* call, const void* pc);
  void (*multiply_begin)(const void* pc);
  void (*multiply_commit)(const void* pc);
  void (*multiply_wait)(unsigned groups_in_flight, const void* pc);
  void (*set_registers)(unsigned registers, int more, const void* pc);

  // Basic blocks, of modules compiled to count: lanes of a warp run them together.
  void (*basic_block)(const void* pc);
  // Undefined behaviour the compiler checked for: "signed overflow in +", with the operands printed if it is known.
  void (*undefined)(const char* what, const void* pc);
};

// What the engine finds in a loaded module, as the symbol jitconv_host_module_table.
struct jitconv_host_module {
  unsigned abi;                         // JITCONV_HOST_ABI of the module's compilation
  unsigned counts;                      // compiled to count
  const struct jitconv_host_api** api;  // set before the first launch
  struct jitconv_host_thread** thread;  // the running thread; set at every switch
  unsigned long long* fma_count;        // of modules compiled to count
  void* shared_memory;                  // JITCONV_HOST_SHARED_BYTES, aligned to 1024
};
// Raised with every change of this header. The largest shared memory of a block is that of sm_90.
#define JITCONV_HOST_ABI 7
#define JITCONV_HOST_SHARED_BYTES 232448
