// The next copy into a stage is asked for before its reader has said that it is done.
#include "device/barrier.cuh"
#include "device/bulk_copy.cuh"
template <bool kRepaired>
__device__ __forceinline__ void kernel(const float* x, float* y) {
  extern __shared__ __align__(128) float shared[];
  Barrier* const full = reinterpret_cast<Barrier*>(shared + 32);
  Barrier* const empty = full + 1;
  const int t = threadIdx.x;
  if (t == 0) {
    barrier_init(full, 1);
    barrier_init(empty, 1);
    barrier_init_visible();
  }
  __syncthreads();
  if (t == 0) {
    for (int n = 0; n < 3; ++n) {
      if (n > 0) barrier_wait(empty, (n - 1) % 2);
      barrier_arrive_expecting(full, 64);
      bulk_copy_to_shared(shared, x + 4 * n, 64, full);  // here: copy
    }
  }
  if (t == 32) {
    float sum = 0.0f;
    for (int n = 0; n < 3; ++n) {
      barrier_wait(full, n % 2);
      if (!kRepaired && n == 1) barrier_arrive(empty);
      sum += shared[n];
      if (kRepaired || n != 1) barrier_arrive(empty);
    }
    y[0] = sum;
  }
}
