// One thread has nothing to do and returns before the barrier.
template <bool kRepaired>
__device__ __forceinline__ void kernel(const float* x, float* y) {
  const int t = threadIdx.x;
  if (!kRepaired && t == 37) return;
  __syncthreads();  // here: barrier
  y[t] = x[t];
}
