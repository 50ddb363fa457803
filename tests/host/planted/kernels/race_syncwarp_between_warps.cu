// __syncwarp() does not order two warps.
template <bool kRepaired>
__device__ __forceinline__ void kernel(const float* x, float* y) {
  extern __shared__ float shared[];
  const int t = threadIdx.x;
  shared[t] = x[t];
  __syncthreads();
  if (t == 0) shared[0] = 7.0f;  // here: store
  if (kRepaired)
    __syncthreads();
  else if (t < 32)
    __syncwarp();
  if (t == 32) y[t] = shared[0];  // here: load
}
