// The block ends while a copy is on its way.
#include "device/barrier.cuh"
#include "device/bulk_copy.cuh"
template <bool kRepaired>
__device__ __forceinline__ void kernel(const float* x, float* y) {
  extern __shared__ __align__(128) float shared[];
  Barrier* const full = reinterpret_cast<Barrier*>(shared + 32);
  if (threadIdx.x == 9) {
    barrier_init(full, 1);
    barrier_init_visible();
    barrier_arrive_expecting(full, 64);
    bulk_copy_to_shared(shared, x, 64, full);  // here: copy
    if (kRepaired) barrier_wait(full, 0);
  }
  y[threadIdx.x] = 1.0f;
}
