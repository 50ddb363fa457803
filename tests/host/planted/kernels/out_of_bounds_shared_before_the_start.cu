// One float before shared memory.
template <bool kRepaired>
__device__ __forceinline__ void kernel(const float* x, float* y) {
  extern __shared__ float shared[];
  const int t = threadIdx.x;
  if (t == 12) shared[kRepaired ? 0 : -1] = x[t];  // here: store
  y[t] = x[t];
}
