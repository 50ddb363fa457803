// What a bulk copy to global memory reads is overwritten before it was waited for.
#include "device/bulk_store.cuh"
#include "device/warpgroup.cuh"
template <bool kRepaired>
__device__ __forceinline__ void kernel(const float* x, float* y) {
  extern __shared__ __align__(128) float shared[];
  shared[threadIdx.x] = x[threadIdx.x];
  fence_async_proxy();
  __syncwarp();
  if (threadIdx.x == 3) {
    bulk_copy_to_global(y, shared, 128);  // here: copy
    bulk_stores_commit();
    if (kRepaired) bulk_stores_wait_read<0>();
  }
  __syncwarp();
  shared[threadIdx.x] = 2.0f * x[threadIdx.x] + 1.0f;
  __syncwarp();
  if (threadIdx.x == 3 && !kRepaired) bulk_stores_wait_read<0>();  // here: wait
}
