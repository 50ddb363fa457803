// The right operand comes by bulk copy, and is multiplied before anybody waits for it.
#include "device/barrier.cuh"
#include "device/bulk_copy.cuh"
#include "device/warpgroup.cuh"
#include "device/multiply_tf32.cuh"
template <bool kRepaired>
__device__ __forceinline__ void kernel(const float* x, float* y) {
  extern __shared__ __align__(128) float shared[];
  const int t = threadIdx.x;
  Barrier* const full = reinterpret_cast<Barrier*>(shared + 1000);
  for (int i = t; i < 512; i += 128) shared[i] = 1.0f;
  fence_async_proxy();
  if (t == 0) {
    barrier_init(full, 1);
    barrier_init_visible();
    barrier_arrive_expecting(full, 256);
    bulk_copy_to_shared(shared + 512, x, 256, full);
  }
  __syncthreads();
  const MatrixOperand a = matrix_operand(shared, 1024), b = matrix_operand(shared + 512, 128);
  float sum[4] = {};
  if (kRepaired) barrier_wait(full, 0);
  multiply_begin();
  multiply(sum, a, b, 1);  // here: multiply
  multiply_commit();
  multiply_wait<0>();
  barrier_wait(full, 0);
  y[t] = sum[0];
}
