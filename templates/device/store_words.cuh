// Stores of 16, 8, 4 and 2 bytes, which the address is a multiple of, if valid. No branches: a warp's stores leave one
// after the other.
__device__ __forceinline__ void store_if(void* y, uint4 value, bool valid) {
  asm volatile(
      "{\n"
      ".reg .pred valid;\n"
      "setp.ne.b32 valid, %5, 0;\n"
      "@valid st.global.v4.b32 [%0], {%1, %2, %3, %4};\n"
      "}" ::"l"(y),
      "r"(value.x), "r"(value.y), "r"(value.z), "r"(value.w), "r"(static_cast<int>(valid))
      : "memory");
}
__device__ __forceinline__ void store_if(void* y, uint2 value, bool valid) {
  asm volatile(
      "{\n"
      ".reg .pred valid;\n"
      "setp.ne.b32 valid, %3, 0;\n"
      "@valid st.global.v2.b32 [%0], {%1, %2};\n"
      "}" ::"l"(y),
      "r"(value.x), "r"(value.y), "r"(static_cast<int>(valid))
      : "memory");
}
__device__ __forceinline__ void store_if(void* y, unsigned value, bool valid) {
  asm volatile(
      "{\n"
      ".reg .pred valid;\n"
      "setp.ne.b32 valid, %2, 0;\n"
      "@valid st.global.b32 [%0], %1;\n"
      "}" ::"l"(y),
      "r"(value), "r"(static_cast<int>(valid))
      : "memory");
}
__device__ __forceinline__ void store_if(void* y, unsigned short value, bool valid) {
  asm volatile(
      "{\n"
      ".reg .pred valid;\n"
      "setp.ne.b32 valid, %2, 0;\n"
      "@valid st.global.b16 [%0], %1;\n"
      "}" ::"l"(y),
      "h"(value), "r"(static_cast<int>(valid))
      : "memory");
}
