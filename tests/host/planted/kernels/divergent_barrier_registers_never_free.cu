// Two warpgroups ask for more registers than the third gives back: 40 + 2 * 240 is more than the 3 * 168 of the launch.
#include "device/warpgroup.cuh"
template <bool kRepaired>
__device__ __forceinline__ void kernel(const float* x, float* y) {
  const int t = threadIdx.x;
  if (t < 128) {
    shrink_registers_to<kRepaired ? 24 : 40>();
  } else {
    grow_registers_to<240>();  // here: grow
  }
  if (t < 256) y[t] = 1.0f;
}
