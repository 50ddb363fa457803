// An index computed in 32 bits where 64 are needed ends anywhere.
template <bool kRepaired>
__device__ __forceinline__ void kernel(const float* x, float* y) {
  const int t = threadIdx.x;
  const long long far = kRepaired ? 0 : 1ll << 36;
  if (t == 1) y[t] = x[far];  // here: load
}
