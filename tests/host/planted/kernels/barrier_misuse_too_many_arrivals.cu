// Two threads arrive in a phase of one, which waits for a copy that comes later.
#include "device/barrier.cuh"
#include "device/bulk_copy.cuh"
template <bool kRepaired>
__device__ __forceinline__ void kernel(const float* x, float* y) {
  extern __shared__ __align__(128) float shared[];
  Barrier* const done = reinterpret_cast<Barrier*>(shared + 32);
  const int t = threadIdx.x;
  if (t == 0) {
    barrier_init(done, kRepaired ? 2 : 1);
    barrier_init_visible();
  }
  __syncthreads();
  if (t == 0) barrier_arrive_expecting(done, 64);
  __syncthreads();
  if (t == 4) barrier_arrive(done);  // here: arrive
  __syncthreads();
  if (t == 0) bulk_copy_to_shared(shared, x, 64, done);
  barrier_wait(done, 0);
  y[t] = shared[t % 16];
}
