// CPU model of device/store_words.cuh.
__device__ __forceinline__ void store_if(void* y, uint4 value, bool valid) {
  if (valid) jitconv_copy_word<16>(y, &value);
}
__device__ __forceinline__ void store_if(void* y, uint2 value, bool valid) {
  if (valid) jitconv_copy_word<8>(y, &value);
}
__device__ __forceinline__ void store_if(void* y, unsigned value, bool valid) {
  if (valid) jitconv_copy_word<4>(y, &value);
}
__device__ __forceinline__ void store_if(void* y, unsigned short value, bool valid) {
  if (valid) jitconv_copy_word<2>(y, &value);
}
