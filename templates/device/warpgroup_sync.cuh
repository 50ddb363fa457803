// Waits for all threads of a warpgroup, and makes visible to each what the others wrote before. Each warpgroup has a
// barrier of its own; number 0 is that of __syncthreads().
__device__ __forceinline__ void warpgroup_sync(int barrier) {
  asm volatile("bar.sync %0, 128;" ::"r"(barrier) : "memory");
}
