// setmaxnreg takes multiples of 8.
#include "device/warpgroup.cuh"
template <bool kRepaired>
__device__ __forceinline__ void kernel(const float* x, float* y) {
  const int t = threadIdx.x;
  shrink_registers_to<kRepaired ? 40 : 42>();  // here: shrink
  y[t] = 1.0f;
}
