// CPU model of device/operand_tf32.cuh: cvt.rna.tf32.f32, bit for bit.
constexpr int kOperandChannels = 4;
__device__ __forceinline__ unsigned round_to_tf32(float value) {
  const unsigned bits = __float_as_uint(value), magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return bits & ~0x1fffu;  // a NaN keeps what fits of its payload, or is infinity
  return (bits + 0x1000u) & ~0x1fffu;  // half of the last place; the carry may raise the exponent, up to infinity
}
__device__ __forceinline__ uint4 operand_row(const Element* channel) {
  return make_uint4(round_to_tf32(channel[0]), round_to_tf32(channel[1]), round_to_tf32(channel[2]),
                    round_to_tf32(channel[3]));
}
