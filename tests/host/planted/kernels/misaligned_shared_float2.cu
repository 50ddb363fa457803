// A staged tile of odd pitch, written in pairs.
template <bool kRepaired>
__device__ __forceinline__ void kernel(const float* x, float* y) {
  extern __shared__ __align__(16) float shared[];
  const int t = threadIdx.x;
  if (t != 3) return;
  float2 pair;
  pair.x = x[0], pair.y = x[1];
  *reinterpret_cast<float2*>(shared + t * (kRepaired ? 8 : 7)) = pair;  // here: store
  y[t] = x[t];
}
