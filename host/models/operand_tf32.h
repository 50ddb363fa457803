// CPU model of device/operand_tf32.cuh: cvt.rn.tf32.f32, bit for bit.
constexpr int kOperandChannels = 4;
__device__ __forceinline__ unsigned round_to_tf32(float value) {
  const unsigned bits = __float_as_uint(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fffe000u;  // every NaN is this one
  // Half of the last place, less one where that is even; the carry may raise the exponent, up to infinity.
  return (bits + 0xfffu + (bits >> 13 & 1u)) & ~0x1fffu;
}
__device__ __forceinline__ uint4 operand_row(const Element* channel) {
  return make_uint4(round_to_tf32(channel[0]), round_to_tf32(channel[1]), round_to_tf32(channel[2]),
                    round_to_tf32(channel[3]));
}
