// The mask leaves lane 20 out, so it does not know of lane 0's store.
template <bool kRepaired>
__device__ __forceinline__ void kernel(const float* x, float* y) {
  extern __shared__ float shared[];
  const int t = threadIdx.x;
  shared[t] = x[t];
  __syncthreads();
  if (t == 0) shared[0] = 7.0f;  // here: store
  if (kRepaired)
    __syncwarp();
  else if (t < 16)
    __syncwarp(0x0000ffffu);
  if (t == 20) y[t] = shared[0];  // here: load
}
