// An offset that does not fit 32 bits.
template <bool kRepaired>
__device__ __forceinline__ void kernel(const float* x, float* y) {
  const int t = threadIdx.x;
  const int plane = (t == 2 ? 2147483645 : 0) + static_cast<int>(x[t]);  // x[t] is t
  const int offset = plane + (t == 2 && !kRepaired ? 1 : 0);  // here: add
  y[t] = static_cast<float>(offset % 2);
}
