// CPU model of device/pair_f16.cuh.
__device__ __forceinline__ unsigned element_pair(float low, float high) {
  return f16_bits(low) | static_cast<unsigned>(f16_bits(high)) << 16;
}
