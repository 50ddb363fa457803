// The block ends before its bulk copy to global memory has read shared memory.
#include "device/bulk_store.cuh"
#include "device/warpgroup.cuh"
template <bool kRepaired>
__device__ __forceinline__ void kernel(const float* x, float* y) {
  extern __shared__ __align__(128) float shared[];
  shared[threadIdx.x] = x[threadIdx.x];
  fence_async_proxy();
  __syncwarp();
  if (threadIdx.x == 5) {
    bulk_copy_to_global(y, shared, 64);  // here: copy
    bulk_stores_commit();
    if (kRepaired) bulk_stores_wait_read<0>();
  }
}
