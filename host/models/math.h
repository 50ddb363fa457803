// CUDA's mathematical functions. What IEEE 754 defines (fused multiply-add, square root, minimum, rounding) has the
// GPU's bits, NaNs apart; expf and its like come from this machine's library and may differ from the GPU's in the last
// places. Part of every kernel's prelude.
#pragma once

extern "C" {
float expf(float) noexcept;
float exp2f(float) noexcept;
float logf(float) noexcept;
float log2f(float) noexcept;
float tanhf(float) noexcept;
float erff(float) noexcept;
float powf(float, float) noexcept;
float sinf(float) noexcept;
float cosf(float) noexcept;
}

JITCONV_INLINE float fmaf(float a, float b, float c) {
#if defined(JITCONV_COUNTING)
  jitconv_count_fma();
#endif
  return __builtin_fmaf(a, b, c);
}
JITCONV_INLINE float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
JITCONV_INLINE float __fadd_rn(float a, float b) { return a + b; }
JITCONV_INLINE float __fsub_rn(float a, float b) { return a - b; }
JITCONV_INLINE float __fmul_rn(float a, float b) { return a * b; }
JITCONV_INLINE float __fdiv_rn(float a, float b) { return a / b; }
JITCONV_INLINE float sqrtf(float a) { return __builtin_sqrtf(a); }
JITCONV_INLINE float __fsqrt_rn(float a) { return __builtin_sqrtf(a); }
JITCONV_INLINE float fabsf(float a) { return __builtin_fabsf(a); }
JITCONV_INLINE float floorf(float a) { return __builtin_floorf(a); }
JITCONV_INLINE float ceilf(float a) { return __builtin_ceilf(a); }
JITCONV_INLINE float truncf(float a) { return __builtin_truncf(a); }
JITCONV_INLINE float rintf(float a) { return __builtin_rintf(a); }
JITCONV_INLINE float copysignf(float a, float b) { return __builtin_copysignf(a, b); }

// A NaN and a number give the number, and -0 is less than +0. C++ promises neither.
JITCONV_INLINE float fminf(float a, float b) {
  if (a != a) return b != b ? __uint_as_float(0x7fffffffu) : b;
  if (b != b) return a;
  if (a == b) return __uint_as_float(__float_as_uint(a) | __float_as_uint(b));
  return a < b ? a : b;
}
JITCONV_INLINE float fmaxf(float a, float b) {
  if (a != a) return b != b ? __uint_as_float(0x7fffffffu) : b;
  if (b != b) return a;
  if (a == b) return __uint_as_float(__float_as_uint(a) & __float_as_uint(b));
  return a > b ? a : b;
}

#define JITCONV_MIN_MAX(type)                                       \
  JITCONV_INLINE type min(type a, type b) { return a < b ? a : b; } \
  JITCONV_INLINE type max(type a, type b) { return a > b ? a : b; }
JITCONV_MIN_MAX(int)
JITCONV_MIN_MAX(unsigned)
JITCONV_MIN_MAX(long)
JITCONV_MIN_MAX(unsigned long)
JITCONV_MIN_MAX(long long)
JITCONV_MIN_MAX(unsigned long long)
JITCONV_INLINE unsigned min(int a, unsigned b) { return min(static_cast<unsigned>(a), b); }
JITCONV_INLINE unsigned min(unsigned a, int b) { return min(a, static_cast<unsigned>(b)); }
JITCONV_INLINE unsigned max(int a, unsigned b) { return max(static_cast<unsigned>(a), b); }
JITCONV_INLINE unsigned max(unsigned a, int b) { return max(a, static_cast<unsigned>(b)); }
JITCONV_INLINE float min(float a, float b) { return fminf(a, b); }
JITCONV_INLINE float max(float a, float b) { return fmaxf(a, b); }
JITCONV_INLINE int abs(int a) { return a < 0 ? -a : a; }
