// Nothing orders the initialisation before another thread's use.
#include "device/barrier.cuh"
template <bool kRepaired>
__device__ __forceinline__ void kernel(const float* x, float* y) {
  extern __shared__ __align__(128) float shared[];
  Barrier* const done = reinterpret_cast<Barrier*>(shared + 32);
  const int t = threadIdx.x;
  if (t == 0) {
    barrier_init(done, 1);
    barrier_init_visible();
  }
  if (kRepaired) __syncthreads();
  if (t == 4) barrier_arrive(done);  // here: arrive
  y[t] = 1.0f;
}
