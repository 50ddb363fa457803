// One thread waits until its bulk copy has been read; the others stage again without knowing.
#include "device/bulk_store.cuh"
#include "device/warpgroup.cuh"
template <bool kRepaired>
__device__ __forceinline__ void kernel(const float* x, float* y) {
  extern __shared__ __align__(128) float shared[];
  if (threadIdx.x >= 32) return;
  shared[threadIdx.x] = x[threadIdx.x];
  fence_async_proxy();
  __syncwarp();
  if (threadIdx.x == 0) {
    bulk_copy_to_global(y, shared, 128);  // here: copy
    bulk_stores_commit();
    bulk_stores_wait_read<0>();
  }
  if (kRepaired) __syncwarp();
  if (threadIdx.x == 9) shared[9] = x[3];  // here: store
}
