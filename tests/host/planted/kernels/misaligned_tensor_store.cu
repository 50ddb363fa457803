// A tensor copy to global memory reads from where boxes do not begin.
#include "device/tensor_map.cuh"
#include "device/tensor_store.cuh"
#include "device/bulk_store.cuh"
#include "device/warpgroup.cuh"
template <bool kRepaired>
__device__ __forceinline__ void kernel(const float* x, const TensorMap* y) {
  extern __shared__ __align__(128) float shared[];
  float* const box = shared + (kRepaired ? 32 : 16);
  box[threadIdx.x] = x[threadIdx.x];
  fence_async_proxy();
  __syncthreads();
  if (threadIdx.x == 0) {
    tensor_copy_to_global(y, 0, 0, 0, 0, box);  // here: copy
    bulk_stores_commit();
    bulk_stores_wait_read<0>();
  }
}
