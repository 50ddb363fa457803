// A shift by the width of the type.
template <bool kRepaired>
__device__ __forceinline__ void kernel(const float* x, float* y) {
  const int t = threadIdx.x;
  const int amount = t == 6 ? (kRepaired ? 31 : 32) : static_cast<int>(x[0]);
  const unsigned bits = 1u << amount;  // here: shift
  y[t] = static_cast<float>(bits & 1u);
}
