// Element: one value of x, w, bias, residual or y in memory. Here fp16, rounded to nearest even when written.
struct Element {
  unsigned short bits;
};
__device__ __forceinline__ float to_float(Element value) {
  float result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(value.bits));
  return result;
}
__device__ __forceinline__ Element from_float(float value) {
  Element result;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(value));
  return result;
}
