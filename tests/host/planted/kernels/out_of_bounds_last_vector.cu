// x has 250 elements: the last vector begins inside and ends outside.
template <bool kRepaired>
__device__ __forceinline__ void kernel(const float* x, float* y) {
  const int t = threadIdx.x;
  if (t != 8) return;
  const float4 quad = *reinterpret_cast<const float4*>(x + (kRepaired ? 244 : 248));  // here: load
  y[t] = quad.x + quad.y + quad.z + quad.w;
}
