// The block asked for 64 floats of shared memory.
template <bool kRepaired>
__device__ __forceinline__ void kernel(const float* x, float* y) {
  extern __shared__ float shared[];
  const int t = threadIdx.x;
  shared[kRepaired ? t : t + 1] = x[t];  // here: store
  y[t] = x[t];
}
