// CPU model of device/load_32bit.cuh.
template <long long kOffset>
__device__ __forceinline__ Element load_if(const Element* source, bool valid) {
  Element result = {};
  if (valid) result = source[kOffset];
  return result;
}
template <long long kOffset>
__device__ __forceinline__ void load_pair_if(const Element* source, bool valid, Element& first, Element& second) {
  Element pair[2] = {};
  if (valid) jitconv_copy_word<8>(pair, source + kOffset);
  first = pair[0];
  second = pair[1];
}
