// CPU model of device/load_32bit.cuh.
template <long long kOffset>
__device__ __forceinline__ Element load_if(const Element* source, bool valid) {
  Element result = {};
  if (valid) result = source[kOffset];
  return result;
}
