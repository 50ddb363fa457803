// A float as the sum of two TF32 numbers: the nearest, and the nearest to what that leaves. The sum has all 24 bits
// but, at times, the last. No part of a finite number is infinite, nor is their sum, and the larger part is zero only
// of zero. Infinity is split into 1 and infinity, NaN into 1 and NaN. So infinity times a finite number is no NaN.
__device__ __forceinline__ void split_tf32(float value, unsigned& high, unsigned& low) {
  constexpr unsigned kInfinity = 0x7f800000u, kLargest = 0x7f7fe000u, kSmallest = 0x00002000u, kOne = 0x3f800000u;
  const unsigned bits = __float_as_uint(value), magnitude = bits & 0x7fffffffu;
  unsigned nearest = round_to_tf32(__uint_as_float(magnitude));
  const bool truncates = nearest >= kInfinity && magnitude < kInfinity;
  if (truncates) nearest = kLargest;
  if (magnitude - 1 < kSmallest - 1) nearest = kSmallest;
  if (magnitude >= kInfinity) nearest = kOne;
  high = nearest | (bits & 0x80000000u);
  const float rest = value - __uint_as_float(high);
  low = truncates ? __float_as_uint(rest) & 0xffffe000u : round_to_tf32(rest);
}
// Four channels of a pixel as one row of each of two matrix operands' halves: the larger parts at `row`, the smaller
// ones kPartRows rows behind it.
template <int kPartRows>
__device__ __forceinline__ void store_split_row(uint4* row, const Element* channel) {
  uint4 high, low;
  split_tf32(channel[0], high.x, low.x);
  split_tf32(channel[1], high.y, low.y);
  split_tf32(channel[2], high.z, low.z);
  split_tf32(channel[3], high.w, low.w);
  row[0] = high;
  row[kPartRows] = low;
}
