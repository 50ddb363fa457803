// A store to x.
template <bool kRepaired>
__device__ __forceinline__ void kernel(const float* x, float* y) {
  const int t = threadIdx.x;
  if (t == 17) (kRepaired ? y : const_cast<float*>(x))[t] = 1.0f;  // here: store
}
