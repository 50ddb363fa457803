// Operands of matrix multiplications are made of rows: eight channels of a pixel are one of a half.

constexpr int kOperandChannels = 8;
__device__ __forceinline__ unsigned operand_pair(Element low, Element high) {
  return low.bits | static_cast<unsigned>(high.bits) << 16;
}
__device__ __forceinline__ uint4 operand_row(const Element* channel) {
  return make_uint4(operand_pair(channel[0], channel[1]), operand_pair(channel[2], channel[3]),
                    operand_pair(channel[4], channel[5]), operand_pair(channel[6], channel[7]));
}
// Of the first or the second pixel of a pair, whose elements lie in the low and the high half of each channel.
__device__ __forceinline__ uint4 operand_row_of_pairs(const unsigned* channel, bool high) {
  const auto join = [high](unsigned even, unsigned odd) {
    return high ? even >> 16 | (odd & 0xffff0000u) : (even & 0xffffu) | odd << 16;
  };
  return make_uint4(join(channel[0], channel[1]), join(channel[2], channel[3]), join(channel[4], channel[5]),
                    join(channel[6], channel[7]));
}
