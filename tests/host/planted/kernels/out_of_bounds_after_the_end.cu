// y has 256 elements.
template <bool kRepaired>
__device__ __forceinline__ void kernel(const float* x, float* y) {
  const int t = threadIdx.x;
  if (t == 63) y[kRepaired ? 255 : 256] = x[t];  // here: store
}
