// A float as the sum of two TF32 numbers: the nearest, and the nearest to what that leaves. The sum has all 24 bits
// but, at times, the last. No part of a finite number is infinite, nor is their sum, and the larger part is zero only
// of zero. Infinity is split into 1 and infinity, NaN into 1 and NaN. So infinity times a finite number is no NaN.
constexpr unsigned kSmallestTf32 = 0x00002000u, kLargestTf32 = 0x7f7fe000u, kRoundedToInfinity = 0x7f7ff000u;
__device__ __forceinline__ void split_any(float value, unsigned& high, unsigned& low) {
  constexpr unsigned kInfinity = 0x7f800000u, kOne = 0x3f800000u;
  const unsigned bits = __float_as_uint(value), magnitude = bits & 0x7fffffffu;
  unsigned nearest = round_to_tf32(__uint_as_float(magnitude));
  const bool truncates = magnitude >= kRoundedToInfinity && magnitude < kInfinity;
  if (truncates) nearest = kLargestTf32;
  if (magnitude - 1 < kSmallestTf32 - 1) nearest = kSmallestTf32;
  if (magnitude >= kInfinity) nearest = kOne;
  high = nearest | (bits & 0x80000000u);
  const float rest = value - __uint_as_float(high);
  low = truncates ? __float_as_uint(rest) & 0xffffe000u : round_to_tf32(rest);
}
// The same parts of a float that rounding splits: zero, or neither below the smallest TF32 number nor near infinity.
__device__ __forceinline__ void split_by_rounding(float value, unsigned& high, unsigned& low) {
  high = round_to_tf32(value);
  low = round_to_tf32(value - __uint_as_float(high));
}
// Whether rounding splits all of these floats. Twice a float's bits are its magnitude, and 1 less than those of zero
// are the largest number.
template <int kCount>
__device__ __forceinline__ bool rounding_splits(const float* value) {
  unsigned smallest = 0xffffffffu, largest = 0;
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const unsigned twice = 2 * __float_as_uint(value[i]);
    smallest = min(smallest, twice - 1);
    largest = max(largest, twice);
  }
  return smallest >= 2 * kSmallestTf32 - 1 && largest < 2 * kRoundedToInfinity;
}
// The larger and the smaller parts of floats. One branch for all: rounding takes a third of the instructions.
template <int kCount>
__device__ __forceinline__ void split_values(const float* value, unsigned* high, unsigned* low) {
  if (rounding_splits<kCount>(value)) {
#pragma unroll
    for (int i = 0; i < kCount; ++i) split_by_rounding(value[i], high[i], low[i]);
  } else {
#pragma unroll
    for (int i = 0; i < kCount; ++i) split_any(value[i], high[i], low[i]);
  }
}
// Four channels of a pixel as one row of each of two matrix operands' halves: the larger parts at `row`, the smaller
// ones kPartRows rows behind it.
template <int kPartRows, bool kRounds = false>
__device__ __forceinline__ void store_split_row(uint4* row, const float* channel) {
  unsigned high[4], low[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (kRounds)
      split_by_rounding(channel[i], high[i], low[i]);
    else
      split_any(channel[i], high[i], low[i]);
  }
  row[0] = make_uint4(high[0], high[1], high[2], high[3]);
  row[kPartRows] = make_uint4(low[0], low[1], low[2], low[3]);
}
// The first `count` of kRows such rows, kPitch rows apart.
template <int kPartRows, int kRows, int kPitch>
__device__ __forceinline__ void store_split_rows(uint4* row, const float* channel, int count) {
  if (rounding_splits<kRows * 4>(channel)) {
#pragma unroll
    for (int i = 0; i < kRows; ++i)
      if (i < count) store_split_row<kPartRows, true>(row + i * kPitch, channel + i * 4);
  } else {
#pragma unroll
    for (int i = 0; i < kRows; ++i)
      if (i < count) store_split_row<kPartRows>(row + i * kPitch, channel + i * 4);
  }
}
