// Thread 77 adds to its sums while the multiplication may still do so.
#include "device/warpgroup.cuh"
#include "device/multiply_tf32.cuh"
template <bool kRepaired>
__device__ __forceinline__ void kernel(const float* x, float* y) {
  extern __shared__ __align__(128) float shared[];
  const int t = threadIdx.x;
  for (int i = t; i < 512 + 64; i += 128) shared[i] = 1.0f;
  fence_async_proxy();
  __syncthreads();
  const MatrixOperand a = matrix_operand(shared, 1024), b = matrix_operand(shared + 512, 128);
  float sum[4] = {};
  multiply_begin();
  multiply(sum, a, b, 1);
  multiply_commit();
  if (kRepaired) multiply_wait<0>();
  if (t == 77) sum[3] = 5.0f;  // here: store
  multiply_wait<0>();
  y[t] = sum[0];
}
