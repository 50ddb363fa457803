// A float rounded to fp16 as cvt.rn.f16.f32 does it, bit for bit. Integers rather than the CPU's own instructions,
// which keep a NaN's sign and payload where the GPU writes one NaN.
JITCONV_INLINE unsigned short f16_bits(float value) {
  const unsigned bits = __float_as_uint(value);
  const unsigned sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
  unsigned result;
  if (magnitude > 0x7f800000u) return 0x7fffu;
  if (magnitude >= 0x477ff000u) {  // 65520 and more round to infinity
    result = 0x7c00u;
  } else if (magnitude < 0x38800000u) {  // below 2^-14 fp16 counts in steps of 2^-24, as fp32 does from 0.5 to 1
    result = __float_as_uint(__uint_as_float(magnitude) + 0.5f) - 0x3f000000u;
  } else {  // half of the last place, less where that would round a tie to odd; the carry may raise the exponent
    result = (magnitude + 0xfffu + (magnitude >> 13 & 1u) - (112u << 23)) >> 13;
  }
  return static_cast<unsigned short>(sign | result);
}
