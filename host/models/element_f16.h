// CPU model of device/element_f16.cuh: the conversions of cvt.f32.f16 and cvt.rn.f16.f32, bit for bit. Integers rather
// than the CPU's own instructions, which keep a NaN's sign and payload where the GPU writes one NaN.
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
__device__ __forceinline__ Element from_float(float value) {
  const unsigned bits = __float_as_uint(value);
  const unsigned sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
  unsigned result;
  if (magnitude > 0x7f800000u) return {0x7fffu};
  if (magnitude >= 0x477ff000u) {  // 65520 and more round to infinity
    result = 0x7c00u;
  } else if (magnitude < 0x38800000u) {  // below 2^-14 fp16 counts in steps of 2^-24, as fp32 does from 0.5 to 1
    result = __float_as_uint(__uint_as_float(magnitude) + 0.5f) - 0x3f000000u;
  } else {  // half of the last place, less where that would round a tie to odd; the carry may raise the exponent
    result = (magnitude + 0xfffu + (magnitude >> 13 & 1u) - (112u << 23)) >> 13;
  }
  return {static_cast<unsigned short>(sign | result)};
}
