// Two blocks write one element of y: nothing orders blocks.
template <bool kRepaired>
__device__ __forceinline__ void kernel(const float* x, float* y) {
  const int t = threadIdx.x;
  __syncthreads();
  if (t == 3) y[kRepaired ? blockIdx.x : 0] = x[t];  // here: store
}
