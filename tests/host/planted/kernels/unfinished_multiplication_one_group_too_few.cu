// Two groups are in flight, and the wait is for all but one: the operand of the newer is stored to.
#include "device/warpgroup.cuh"
#include "device/multiply_tf32.cuh"
template <bool kRepaired>
__device__ __forceinline__ void kernel(const float* x, float* y) {
  extern __shared__ __align__(128) float shared[];
  const int t = threadIdx.x;
  for (int i = t; i < 1024; i += 128) shared[i] = 1.0f;
  fence_async_proxy();
  __syncthreads();
  const MatrixOperand a = matrix_operand(shared, 1024);
  float sum[4] = {};
  multiply_begin();
  multiply(sum, a, matrix_operand(shared + 512, 128), 1);
  multiply_commit();
  multiply(sum, a, matrix_operand(shared + 576, 128), 1);
  multiply_commit();
  multiply_wait<kRepaired ? 0 : 1>();
  if (t == 100) shared[576] = 2.0f;  // here: store
  multiply_wait<0>();
  y[t] = sum[0];
}
