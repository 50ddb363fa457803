// Element: one value of x, w, bias, residual or y in memory. Here bfloat16, rounded to nearest even when written.
// Shifts rather than cvt.rn.bf16.f32, which sm_75 lacks.
struct Element {
  unsigned short bits;
};
__device__ __forceinline__ float to_float(Element value) {
  return __uint_as_float(static_cast<unsigned>(value.bits) << 16);
}
__device__ __forceinline__ Element from_float(float value) {
  const unsigned bits = __float_as_uint(value);
  const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
  const unsigned rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
  return {static_cast<unsigned short>(is_nan ? 0x7fffu : rounded >> 16)};
}
