// What warpgroups, four warps each, need around their matrix multiplications (wgmma, sm_90a). A multiplication is
// asynchronous: it reads shared memory and its accumulators some time between multiply_begin() and the multiply_wait()
// that covers the group it was committed to; until then neither may be touched. All functions but fence_async_proxy()
// are called by all threads of a warpgroup together.

using MatrixOperand = unsigned long long;

// A matrix of 16-bit or 32-bit elements in shared memory, 32 bytes wide along the reduction and without swizzle: rows
// are 16 bytes apart, and so is nothing else: its left half (16 bytes of every row) starts at `first`, the right half
// `right_half` bytes behind it (any multiple of 16, but not negative). `first` is a multiple of 16.
__device__ __forceinline__ MatrixOperand matrix_operand(const void* first, unsigned right_half) {
  constexpr unsigned long long kEightRows = 128;  // bytes
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(first));
  return (address & 0x3ffffu) >> 4 | static_cast<unsigned long long>(right_half >> 4) << 16 | (kEightRows >> 4) << 32;
}

// Makes shared memory that this thread wrote, or knows to be written, visible to multiplications and bulk copies.
__device__ __forceinline__ void fence_async_proxy() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

__device__ __forceinline__ void multiply_begin() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void multiply_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Returns when all but the kGroups newest groups of this warpgroup are complete.
template <int kGroups>
__device__ __forceinline__ void multiply_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kGroups) : "memory");
}

// Accumulators behind the multiply_wait() that covers their multiplications. To the compiler, those are complete when
// they are issued; without this it may compute with the sums before they are there.
template <int kAccumulators>
__device__ __forceinline__ void settle(float (&sum)[kAccumulators]) {
#pragma unroll
  for (int i = 0; i < kAccumulators; ++i) asm volatile("" : "+f"(sum[i]));
}

// Move registers, counted per thread, to the warpgroups whose threads hold more.

template <int kRegisters>
__device__ __forceinline__ void shrink_registers_to() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ __forceinline__ void grow_registers_to() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
