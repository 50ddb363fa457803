// A barrier does not wait for copies.
using Element = float;
#include "device/copy_async.cuh"
template <bool kRepaired>
__device__ __forceinline__ void kernel(const float* x, float* y) {
  extern __shared__ float shared[];
  const int t = threadIdx.x;
  if (t == 0) copy_to_shared<1>(shared, x, true);
  copy_commit();
  if (kRepaired) copy_wait<0>();
  __syncthreads();
  if (t == 63) y[0] = shared[0];  // here: load
}
