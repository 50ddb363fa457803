// A pipeline of two stages whose copies are issued before the barrier: thread 0 refills the stage that thread 40 may
// still be reading.
using Element = float;
#include "device/copy_async.cuh"
template <bool kRepaired>
__device__ __forceinline__ void kernel(const float* x, float* y) {
  extern __shared__ float shared[];
  const int t = threadIdx.x;
  float sum = 0.0f;
  if (t == 0) copy_to_shared<1>(shared, x, true);
  copy_commit();
#pragma unroll 1
  for (int chunk = 0; chunk < 3; ++chunk) {
    copy_wait<0>();
    if (kRepaired) __syncthreads();
    if (t == 0 && chunk < 2) {
      copy_to_shared<1>(shared + (chunk + 1) % 2, x + chunk + 1, true);  // here: copy
    }
    if (!kRepaired) __syncthreads();
    if (t == 40) sum += shared[chunk % 2];  // here: load
    copy_commit();
  }
  if (t == 40) y[0] = sum;
}
