// The first phase has parity 0: a wait for parity 1 returns at once, or once that is complete never.
#include "device/barrier.cuh"
#include "device/bulk_copy.cuh"
template <bool kRepaired>
__device__ __forceinline__ void kernel(const float* x, float* y) {
  extern __shared__ __align__(128) float shared[];
  Barrier* const full = reinterpret_cast<Barrier*>(shared + 32);
  const int t = threadIdx.x;
  if (t == 0) {
    barrier_init(full, 1);
    barrier_init_visible();
    barrier_arrive_expecting(full, 64);
    bulk_copy_to_shared(shared, x, 64, full);
  }
  __syncthreads();
  if (t == 5) {
    barrier_wait(full, kRepaired ? 0 : 1);  // here: wait
    y[t] = shared[t];  // here: load
  }
}
