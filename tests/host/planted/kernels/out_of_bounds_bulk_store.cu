// A bulk copy to global memory reaches past the end of its buffer.
#include "device/bulk_store.cuh"
#include "device/warpgroup.cuh"
template <bool kRepaired>
__device__ __forceinline__ void kernel(const float* x, float* y) {
  extern __shared__ __align__(128) float shared[];
  shared[threadIdx.x] = x[threadIdx.x];
  fence_async_proxy();
  __syncwarp();
  if (threadIdx.x == 0) {
    bulk_copy_to_global(y + (kRepaired ? 0 : 240), shared, 128);  // here: copy
    bulk_stores_commit();
    bulk_stores_wait_read<0>();
  }
}
