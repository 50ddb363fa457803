// Two threads write one element of y.
template <bool kRepaired>
__device__ __forceinline__ void kernel(const float* x, float* y) {
  const int t = threadIdx.x;
  if (t == 9) y[5] = x[t];  // here: first
  if (t == 41) y[kRepaired ? 6 : 5] = x[t];  // here: second
}
