// Two groups, and the second is read after a wait that leaves one in flight.
using Element = float;
#include "device/copy_async.cuh"
template <bool kRepaired>
__device__ __forceinline__ void kernel(const float* x, float* y) {
  extern __shared__ float shared[];
  const int t = threadIdx.x;
  if (t == 33) {
    copy_to_shared<1>(shared, x, true);
    copy_commit();
    copy_to_shared<1>(shared + 1, x + 1, true);
    copy_commit();
    copy_wait<kRepaired ? 0 : 1>();
    y[0] = shared[0];
    y[1] = shared[1];  // here: load
  }
}
