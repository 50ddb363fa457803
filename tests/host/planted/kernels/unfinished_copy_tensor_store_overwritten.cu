// What a tensor copy to global memory reads is overwritten before it was waited for.
#include "device/tensor_map.cuh"
#include "device/tensor_store.cuh"
#include "device/bulk_store.cuh"
#include "device/warpgroup.cuh"
template <bool kRepaired>
__device__ __forceinline__ void kernel(const float* x, const TensorMap* y) {
  extern __shared__ __align__(128) float shared[];
  shared[threadIdx.x] = x[threadIdx.x];
  fence_async_proxy();
  __syncthreads();
  if (threadIdx.x == 3) {
    tensor_copy_to_global(y, 0, 1, 3, 0, shared);  // here: copy
    bulk_stores_commit();
    if (kRepaired) bulk_stores_wait_read<0>();
  }
  __syncthreads();
  shared[threadIdx.x] = 2.0f * x[threadIdx.x] + 1.0f;
  __syncthreads();
  if (threadIdx.x == 3 && !kRepaired) bulk_stores_wait_read<0>();  // here: wait
}
