// Two elements in one register, each rounded to nearest even: fp16.
__device__ __forceinline__ unsigned element_pair(float low, float high) {
  unsigned result;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(high), "f"(low));
  return result;
}
