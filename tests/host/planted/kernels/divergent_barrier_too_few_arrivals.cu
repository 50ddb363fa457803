// A phase takes two arrivals, and one thread arrives.
#include "device/barrier.cuh"
template <bool kRepaired>
__device__ __forceinline__ void kernel(const float* x, float* y) {
  extern __shared__ __align__(128) float shared[];
  Barrier* const done = reinterpret_cast<Barrier*>(shared + 32);
  const int t = threadIdx.x;
  if (t == 0) {
    barrier_init(done, kRepaired ? 1 : 2);
    barrier_init_visible();
  }
  __syncthreads();
  if (t == 1) barrier_arrive(done);
  if (t > 32) barrier_wait(done, 0);  // here: wait
  y[t] = 1.0f;
}
