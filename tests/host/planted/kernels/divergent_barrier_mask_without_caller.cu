// Lane 20 of the second warp takes part in an operation of the lower half.
template <bool kRepaired>
__device__ __forceinline__ void kernel(const float* x, float* y) {
  const int t = threadIdx.x;
  if (t == 52) __syncwarp(kRepaired ? 0x00100000u : 0x0000ffffu);  // here: warp
  y[t] = x[t];
}
