// Waiting for a copy makes it visible to the thread that waited, to no other.
using Element = float;
#include "device/copy_async.cuh"
template <bool kRepaired>
__device__ __forceinline__ void kernel(const float* x, float* y) {
  extern __shared__ float shared[];
  const int t = threadIdx.x;
  shared[t] = x[t];
  __syncthreads();
  if (t == 0) copy_to_shared<1>(shared, x + 3, true);  // here: store
  copy_commit();
  copy_wait<0>();
  if (kRepaired) __syncthreads();
  if (t == 1) y[t] = shared[0];  // here: load
}
