// Thread 4 arrives at a barrier that nobody made one.
#include "device/barrier.cuh"
template <bool kRepaired>
__device__ __forceinline__ void kernel(const float* x, float* y) {
  extern __shared__ __align__(128) float shared[];
  Barrier* const done = reinterpret_cast<Barrier*>(shared + 32);
  const int t = threadIdx.x;
  if (kRepaired && t == 0) {
    barrier_init(done, 1);
    barrier_init_visible();
  }
  __syncthreads();
  if (t == 4) barrier_arrive(done);  // here: arrive
  y[t] = 1.0f;
}
