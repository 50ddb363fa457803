// A bulk copy goes where a thread has just stored, and may overtake the stores.
#include "device/barrier.cuh"
#include "device/bulk_copy.cuh"
#include "device/warpgroup.cuh"
template <bool kRepaired>
__device__ __forceinline__ void kernel(const float* x, float* y) {
  extern __shared__ __align__(128) float shared[];
  Barrier* const full = reinterpret_cast<Barrier*>(shared + 32);
  const int t = threadIdx.x;
  if (t == 0) {
    barrier_init(full, 1);
    barrier_init_visible();
    for (int i = 0; i < 32; ++i) shared[i] = 0.0f;
    if (kRepaired) fence_async_proxy();
    barrier_arrive_expecting(full, 64);
    bulk_copy_to_shared(shared, x, 64, full);  // here: copy
  }
  __syncthreads();
  barrier_wait(full, 0);
  y[t] = shared[t % 32];
}
