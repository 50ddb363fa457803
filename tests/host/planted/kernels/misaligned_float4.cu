// Rows of 5 floats, read 16 bytes at a time.
template <bool kRepaired>
__device__ __forceinline__ void kernel(const float* x, float* y) {
  const int t = threadIdx.x;
  if (t != 1) return;
  const float4 quad = *reinterpret_cast<const float4*>(x + (kRepaired ? 4 : 5) * t);  // here: load
  y[t] = quad.x + quad.y + quad.z + quad.w;
}
