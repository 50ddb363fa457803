// 48 bytes are announced and 64 copied.
#include "device/barrier.cuh"
#include "device/bulk_copy.cuh"
template <bool kRepaired>
__device__ __forceinline__ void kernel(const float* x, float* y) {
  extern __shared__ __align__(128) float shared[];
  Barrier* const full = reinterpret_cast<Barrier*>(shared + 32);
  const int t = threadIdx.x;
  if (t == 0) {
    barrier_init(full, 2);
    barrier_init_visible();
    barrier_arrive_expecting(full, kRepaired ? 64 : 48);
    bulk_copy_to_shared(shared, x, 64, full);
    barrier_arrive(full);
  }
  __syncthreads();
  barrier_wait(full, 0);  // here: wait
  y[t] = shared[t % 4];
}
