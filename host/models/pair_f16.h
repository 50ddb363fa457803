// CPU model of device/pair_f16.cuh.
__device__ __forceinline__ unsigned element_pair(float low, float high) {
  return from_float(low).bits | static_cast<unsigned>(from_float(high).bits) << 16;
}
