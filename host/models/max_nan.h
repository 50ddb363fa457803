// CPU model of device/max_nan.cuh.
__device__ __forceinline__ float max_nan(float a, float b) {
  if (a != a || b != b) return __uint_as_float(0x7fffffffu);
  return fmaxf(a, b);
}
