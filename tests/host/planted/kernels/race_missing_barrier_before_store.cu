// The second iteration overwrites what thread 40 may still be reading for the first.
template <bool kRepaired>
__device__ __forceinline__ void kernel(const float* x, float* y) {
  extern __shared__ float shared[];
  const int t = threadIdx.x;
#pragma unroll 1
  for (int i = 0; i < 2; ++i) {
    if (t == 0) shared[0] = x[i];  // here: store
    __syncthreads();
    if (t == 40) y[i] = shared[0];  // here: load
    if (kRepaired) __syncthreads();
  }
}
