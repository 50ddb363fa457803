// Four channels of a pixel as one row of a matrix operand's half: fp32 rounded to nearest TF32, ties to even (the
// tensor cores would truncate). One instruction; with ties away from zero it would be four.
constexpr int kOperandChannels = 4;
__device__ __forceinline__ unsigned round_to_tf32(float value) {
  unsigned result;
  asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(result) : "f"(value));
  return result;
}
__device__ __forceinline__ uint4 operand_row(const Element* channel) {
  return make_uint4(round_to_tf32(channel[0]), round_to_tf32(channel[1]), round_to_tf32(channel[2]),
                    round_to_tf32(channel[3]));
}
