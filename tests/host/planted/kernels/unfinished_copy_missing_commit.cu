// What no commit closed, no wait waits for.
using Element = float;
#include "device/copy_async.cuh"
template <bool kRepaired>
__device__ __forceinline__ void kernel(const float* x, float* y) {
  extern __shared__ float shared[];
  const int t = threadIdx.x;
  if (t == 33) {
    copy_to_shared<1>(shared, x, true);
    if (kRepaired) copy_commit();
    copy_wait<0>();
    y[0] = shared[0];  // here: load
  }
}
