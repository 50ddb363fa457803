// Warp 0 and warp 1 meet at different barriers of the text.
template <bool kRepaired>
__device__ __forceinline__ void kernel(const float* x, float* y) {
  const int t = threadIdx.x;
  if (kRepaired) {
    __syncthreads();
  } else if (t < 32) {
    __syncthreads();
  } else {
    __syncthreads();  // here: other
  }
  y[t] = x[t];
}
