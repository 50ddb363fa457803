// Read before the wait.
using Element = float;
#include "device/copy_async.cuh"
template <bool kRepaired>
__device__ __forceinline__ void kernel(const float* x, float* y) {
  extern __shared__ __align__(16) float shared[];
  const int t = threadIdx.x;
  if (t == 2) copy_to_shared<4>(shared, x, true);
  copy_commit();
  if (kRepaired) copy_wait<0>();
  if (t == 2) y[t] = shared[3];  // here: load
  copy_wait<0>();
}
