// Floats as sums of two fp16 numbers, after a scale, a power of two, has brought the largest of them to 2^14 or more,
// but below 2^15. The sum has 22 bits and a sign, or what lies above 2^-25. An infinity is split into 1 and infinity,
// NaN into 1 and NaN, and the larger part is zero only of zero: infinity times a finite number is no NaN.
__device__ __forceinline__ float scale_of(unsigned largest) {
  constexpr unsigned kMost = 127 + 126;  // exponents have a bias of 127
  const unsigned exponent = 2 * 127 + 14 - (largest >> 23);
  return __uint_as_float((exponent < kMost ? exponent : kMost) << 23);
}
__device__ __forceinline__ float inverse_of_scale(float scale) {
  return __uint_as_float((2 * 127u << 23) - __float_as_uint(scale));
}
// The largest of the magnitudes that 128 blocks have found, 16 bytes of which each lane of a warp reads.
__device__ __forceinline__ unsigned largest_of(const uint4* parts) {
  const uint4 some = parts[threadIdx.x % 32];
  unsigned largest = max(max(some.x, some.y), max(some.z, some.w));
#pragma unroll
  for (int lanes = 16; lanes > 0; lanes /= 2) largest = max(largest, __shfl_xor_sync(0xffffffffu, largest, lanes));
  return largest;
}
__device__ __forceinline__ void split_any_to_f16(float value, float scale, float& high, float& low) {
  constexpr unsigned kSign = 0x80000000u, kInfinity = 0x7f800000u, kOne = 0x3f800000u;
  const unsigned bits = __float_as_uint(value), magnitude = bits & ~kSign;
  const float scaled = value * scale;
  const float least = __uint_as_float(__float_as_uint(0x1p-24f) | (bits & kSign));
  // A number of TF32 has as many bits as one of fp16.
  const float nearest = __uint_as_float(round_to_tf32(scaled));
  high = magnitude != 0 && fabsf(scaled) < 0x1p-24f ? least : nearest;
  low = scaled - high;
  if (magnitude < kInfinity) return;
  high = __uint_as_float(kOne | (bits & kSign));
  low = value;
}
// The same parts of a number that is zero, or finite and 2^-24 or more after scaling.
__device__ __forceinline__ void split_to_f16(float value, float scale, float& high, float& low) {
  const float scaled = value * scale;
  high = __uint_as_float(round_to_tf32(scaled));
  low = scaled - high;
}
// Eight channels as a row of 16 bytes of larger parts, and kPartRows rows behind it one of smaller parts. One branch for
// all: most numbers need few instructions. Twice a float's bits are its magnitude, and 1 less than those of zero are the
// largest number. `least` is 2^-24 before scaling, or the smallest number if that is smaller still.
template <int kPartRows>
__device__ __forceinline__ void store_f16_rows(uint4* row, const float* channel, float scale) {
  const unsigned least = max(2 * __float_as_uint(0x1p-24f * inverse_of_scale(scale)), 2u), infinity = 2 * 0x7f800000u;
  unsigned smallest = 0xffffffffu, largest = 0;
  float high[8], low[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const unsigned twice = 2 * __float_as_uint(channel[i]);
    smallest = min(smallest, twice - 1);
    largest = max(largest, twice);
  }
  if (smallest >= least - 1 && largest < infinity) {
#pragma unroll
    for (int i = 0; i < 8; ++i) split_to_f16(channel[i], scale, high[i], low[i]);
  } else {
#pragma unroll
    for (int i = 0; i < 8; ++i) split_any_to_f16(channel[i], scale, high[i], low[i]);
  }
  row[0] = make_uint4(element_pair(high[0], high[1]), element_pair(high[2], high[3]), element_pair(high[4], high[5]),
                      element_pair(high[6], high[7]));
  row[kPartRows] = make_uint4(element_pair(low[0], low[1]), element_pair(low[2], low[3]), element_pair(low[4], low[5]),
                              element_pair(low[6], low[7]));
}
// The channels of a pixel as kRows rows, kPitch rows apart: of each 16, two of larger parts and two of smaller ones.
template <int kRows, int kPitch>
__device__ __forceinline__ void store_f16_pixel(uint4* row, const float* channel, float scale) {
#pragma unroll
  for (int i = 0; i < kRows / 2; ++i)
    store_f16_rows<2 * kPitch>(row + (i / 2 * 4 + i % 2) * kPitch, channel + i * 8, scale);
}
