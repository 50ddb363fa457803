// The warpgroup gives its stage back before it waits for the multiplication that reads it.
#include "device/barrier.cuh"
#include "device/bulk_copy.cuh"
#include "device/warpgroup.cuh"
#include "device/multiply_tf32.cuh"
template <bool kRepaired>
__device__ __forceinline__ void kernel(const float* x, float* y) {
  extern __shared__ __align__(128) float shared[];
  Barrier* const full = reinterpret_cast<Barrier*>(shared + 1000);
  Barrier* const empty = full + 1;
  const int t = threadIdx.x;
  if (t == 0) {
    barrier_init(full, 1);
    barrier_init(empty, 128);
    barrier_init_visible();
  }
  for (int i = t; i < 512; i += 256) shared[i] = 1.0f;
  fence_async_proxy();
  __syncthreads();
  if (t < 128) {
    const MatrixOperand a = matrix_operand(shared, 1024), b = matrix_operand(shared + 512, 128);
    float sum[4] = {};
    for (int n = 0; n < 2; ++n) {
      barrier_wait(full, n);
      multiply_begin();
      multiply(sum, a, b, 1);
      multiply_commit();
      if (kRepaired) multiply_wait<0>();
      barrier_arrive(empty);
      if (!kRepaired) multiply_wait<0>();
    }
    y[t] = sum[0];
  } else if (t == 128) {
    for (int n = 0; n < 2; ++n) {
      barrier_wait(empty, (n + 1) % 2);
      barrier_arrive_expecting(full, 256);
      bulk_copy_to_shared(shared + 512, x + 64 * n, 256, full);  // here: copy
    }
  }
}
