// Kernels that make and inspect test data where it lies. Written by hand and compiled by NVRTC at run time; independent
// of everything jitconv generates. The generator is check::Fill's, restated: the host can recompute any element.

typedef unsigned int u32;
typedef unsigned short u16;
typedef unsigned long long u64;
typedef long long i64;

__device__ __forceinline__ u64 bits_of(u64 seed, u64 index) {
  u64 z = seed + index * 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

// kind as check::DataKind: 0 exact, 1 random, 2 positive.
__device__ __forceinline__ float value(u64 bits, int kind, u32 range, u32 keep, float scale, float offset) {
  if (kind == 0) {
    if ((static_cast<u32>(bits >> 32) & 0x7fffffffu) >= keep) return offset;
    const float magnitude = static_cast<float>(1 + (((bits & 0xffffffffu) * range) >> 32)) * scale;
    return ((bits >> 63) != 0 ? -magnitude : magnitude) + offset;
  }
  const int steps = static_cast<int>(bits >> 40);
  const float unit = kind == 2 ? static_cast<float>(steps) * 0x1p-24f : static_cast<float>(steps - (1 << 23)) * 0x1p-23f;
  return unit * scale + offset;
}

// To the nearest value, ties to even, in integers so that a host can run it too. Finite values within the type's range.
__device__ __forceinline__ u16 f16_bits(float v) {
  const u32 bits = __float_as_uint(v), sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude < 0x38800000u) {  // below 2^-14: a multiple of 2^-24
    return static_cast<u16>(sign | static_cast<u32>(rintf(__uint_as_float(magnitude) * 0x1p24f)));
  }
  const u32 rebiased = magnitude - (112u << 23);
  return static_cast<u16>(sign | (rebiased + 0xfffu + (rebiased >> 13 & 1u)) >> 13);
}

__device__ __forceinline__ u16 bf16_bits(float v) {
  const u32 bits = __float_as_uint(v);
  return static_cast<u16>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

#define FOR_EACH(i, count)                                                             \
  for (i64 i = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x; i < (count); \
       i += static_cast<i64>(gridDim.x) * blockDim.x)

extern "C" __global__ void fill_f32(float* out, i64 count, u64 seed, int kind, u32 range, u32 keep, float scale,
                                    float offset) {
  FOR_EACH(i, count) out[i] = value(bits_of(seed, static_cast<u64>(i)), kind, range, keep, scale, offset);
}

extern "C" __global__ void fill_f16(u16* out, i64 count, u64 seed, int kind, u32 range, u32 keep, float scale,
                                    float offset) {
  FOR_EACH(i, count) out[i] = f16_bits(value(bits_of(seed, static_cast<u64>(i)), kind, range, keep, scale, offset));
}

extern "C" __global__ void fill_bf16(u16* out, i64 count, u64 seed, int kind, u32 range, u32 keep, float scale,
                                    float offset) {
  FOR_EACH(i, count) out[i] = bf16_bits(value(bits_of(seed, static_cast<u64>(i)), kind, range, keep, scale, offset));
}

extern "C" __global__ void gather_32(const u32* from, const i64* indices, u32* out, i64 count) {
  FOR_EACH(i, count) out[i] = from[indices[i]];
}

extern "C" __global__ void gather_16(const u16* from, const i64* indices, u32* out, i64 count) {
  FOR_EACH(i, count) out[i] = from[indices[i]];
}

// `largest` is the bit pattern of infinity; a NaN is anything above it, sign aside.
extern "C" __global__ void count_nan_32(const u32* from, i64 count, u32 largest, u64* result) {
  u64 found = 0;
  FOR_EACH(i, count) found += (from[i] & 0x7fffffffu) > largest;
  if (found != 0) atomicAdd(result, found);
}

extern "C" __global__ void count_nan_16(const u16* from, i64 count, u32 largest, u64* result) {
  u64 found = 0;
  FOR_EACH(i, count) found += (from[i] & 0x7fffu) > largest;
  if (found != 0) atomicAdd(result, found);
}

extern "C" __global__ void count_other_bytes(const unsigned char* from, i64 count, u32 expected, u64* result) {
  u64 found = 0;
  FOR_EACH(i, count) found += from[i] != expected;
  if (found != 0) atomicAdd(result, found);
}
