// Thread 9 changes its part of an operand in registers before the multiplication is waited for.
#include "device/warpgroup.cuh"
#include "device/multiply_registers_tf32.cuh"
template <bool kRepaired>
__device__ __forceinline__ void kernel(const float* x, float* y) {
  extern __shared__ __align__(128) float shared[];
  const int t = threadIdx.x;
  for (int i = t; i < 64; i += 128) shared[i] = 1.0f;
  fence_async_proxy();
  __syncthreads();
  const MatrixOperand b = matrix_operand(shared, 128);
  float sum[4] = {};
  unsigned a[4] = {1u, 2u, 3u, 4u};
  multiply_begin();
  multiply(sum, a, b, 1);
  multiply_commit();
  if (kRepaired) multiply_wait<0>();
  if (t == 9) a[2] = 7u;
  if (!kRepaired) multiply_wait<0>();  // here: wait
  if (kRepaired) {
    multiply_begin();
    multiply(sum, a, b, 1);
    multiply_commit();
    multiply_wait<0>();
  }
  y[t] = sum[0];
}
