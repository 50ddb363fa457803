// CPU model of device/element_f16.cuh: the conversion of cvt.f32.f16, bit for bit, and that of cvt.rn.f16.f32, which is
// in f16_bits.h.
struct Element {
  unsigned short bits;
};
__device__ __forceinline__ float to_float(Element value) {
  const unsigned sign = (value.bits & 0x8000u) << 16, magnitude = value.bits & 0x7fffu;
  if (magnitude > 0x7c00u) return __uint_as_float(0x7fffffffu);
  if (magnitude == 0x7c00u) return __uint_as_float(sign | 0x7f800000u);
  // With the fp16 exponent in place of its own, the float is too small by a power of two; the product is exact.
  return __uint_as_float(sign | __float_as_uint(__uint_as_float(magnitude << 13) * 0x1p112f));
}
__device__ __forceinline__ Element from_float(float value) { return {f16_bits(value)}; }
