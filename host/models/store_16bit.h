// CPU model of device/store_16bit.cuh: one access if all elements are written.
constexpr int kStoreElements = 8;
__device__ __forceinline__ void store_elements(Element* y, const float (&value)[kStoreElements], unsigned mask) {
  alignas(16) Element element[kStoreElements];
  for (int i = 0; i < kStoreElements; ++i) element[i] = from_float(value[i]);
  if (mask == 255) {
    jitconv_copy_word<16>(y, element);
    return;
  }
  for (int i = 0; i < kStoreElements; ++i)
    if ((mask >> i & 1) != 0) y[i] = element[i];
}
