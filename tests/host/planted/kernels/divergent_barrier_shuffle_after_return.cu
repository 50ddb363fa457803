// Lane 7 is gone when the others shuffle with it.
template <bool kRepaired>
__device__ __forceinline__ void kernel(const float* x, float* y) {
  const int t = threadIdx.x;
  if (!kRepaired && t == 39) return;
  const float value = __shfl_sync(0xffffffffu, x[t], 0);  // here: warp
  y[t] = value;
}
