// Thread 3 waits for the copy; thread 40, which nothing tells, reads what it brought.
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
  if (t == 3) barrier_wait(full, 0);
  if (kRepaired) __syncthreads();
  if (t == 40) y[t] = shared[0];  // here: load
}
