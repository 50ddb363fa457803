// CPU model of device/load_16bit.cuh.
template <long long kOffset>
__device__ __forceinline__ Element load_if(const Element* source, bool valid) {
  Element result = {};
  if (valid) result = source[kOffset];
  return result;
}
template <long long kOffset>
__device__ __forceinline__ unsigned load_pair_if(const Element* source, bool valid) {
  unsigned result = 0;
  if (valid) jitconv_copy_word<4>(&result, source + kOffset);
  return result;
}
