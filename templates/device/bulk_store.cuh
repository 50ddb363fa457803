// Shared to global copies by TMA (cp.async.bulk, sm_90): one thread asks and goes on. Addresses and size
// are multiples of 16. The engine reads through the async proxy: who wrote the source fences, and the asking thread
// comes behind them. A thread's copies belong to the group that its next bulk_stores_commit() closes;
// bulk_stores_wait_read<n>() returns when the sources of all but its n newest groups have been read and may be
// overwritten. A block that ends must have waited; y is complete when the kernel is.

__device__ __forceinline__ void bulk_copy_to_global(void* destination, const void* source, int bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(destination),
               "r"(static_cast<unsigned>(__cvta_generic_to_shared(source))), "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void bulk_stores_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
template <int kGroups>
__device__ __forceinline__ void bulk_stores_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(kGroups) : "memory");
}
