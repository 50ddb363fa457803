// CPU model of device/store_16bit.cuh: one access if all elements are written.
constexpr int kStoreElements = 8;
__device__ __forceinline__ void store_all_if(Element* y, uint4 value, bool valid) {
  if (valid) jitconv_copy_word<16>(y, &value);
}
__device__ __forceinline__ void store_elements(Element* y, uint4 value, unsigned mask) {
  if (mask == 255) return store_all_if(y, value, true);
  const unsigned pair[4] = {value.x, value.y, value.z, value.w};
  for (int i = 0; i < kStoreElements; ++i)
    if ((mask >> i & 1) != 0) y[i] = {static_cast<unsigned short>(pair[i / 2] >> (i % 2 * 16))};
}
__device__ __forceinline__ uint4 elements_of(const float (&value)[kStoreElements]) {
  return make_uint4(element_pair(value[0], value[1]), element_pair(value[2], value[3]),
                    element_pair(value[4], value[5]), element_pair(value[6], value[7]));
}
__device__ __forceinline__ void store_all_if(Element* y, const float (&value)[kStoreElements], bool valid) {
  store_all_if(y, elements_of(value), valid);
}
__device__ __forceinline__ void store_elements(Element* y, const float (&value)[kStoreElements], unsigned mask) {
  store_elements(y, elements_of(value), mask);
}
