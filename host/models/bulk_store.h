// CPU model of device/bulk_store.cuh. The engine copies, as late or as early as the rules allow.
__device__ __forceinline__ void bulk_copy_to_global(void* destination, const void* source, int bytes) {
  jitconv_store_bulk(destination, source, bytes);
}
__device__ __forceinline__ void bulk_stores_commit() { jitconv_store_bulk_commit(); }
template <int kGroups>
__device__ __forceinline__ void bulk_stores_wait_read() {
  jitconv_store_bulk_wait(kGroups);
}
