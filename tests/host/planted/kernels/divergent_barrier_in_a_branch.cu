// Lane 3 goes to the block's barrier while its warp waits for it.
template <bool kRepaired>
__device__ __forceinline__ void kernel(const float* x, float* y) {
  const int t = threadIdx.x;
  if (kRepaired || t != 3) __syncwarp();  // here: warp
  __syncthreads();
  y[t] = x[t];
}
