// The larger of two, or NaN if one is (sm_80 and later). Of zeros, +0.
__device__ __forceinline__ float max_nan(float a, float b) {
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}
