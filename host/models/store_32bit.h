// CPU model of device/store_32bit.cuh: one access if all elements are written.
constexpr int kStoreElements = 4;
__device__ __forceinline__ void store_all_if(float* y, const float (&value)[kStoreElements], bool valid) {
  if (!valid) return;
  alignas(16) float whole[kStoreElements];
  for (int i = 0; i < kStoreElements; ++i) whole[i] = value[i];
  jitconv_copy_word<16>(y, whole);
}
__device__ __forceinline__ void store_elements(float* y, const float (&value)[kStoreElements], unsigned mask) {
  if (mask == 15) return store_all_if(y, value, true);
  for (int i = 0; i < kStoreElements; ++i)
    if ((mask >> i & 1) != 0) y[i] = value[i];
}
