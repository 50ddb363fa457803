// Four consecutive floats of y: all or none, or those whose bit of `mask` is set. The address is a multiple of 16
// bytes. No branches: a warp's stores leave one after the other.
constexpr int kStoreElements = 4;
__device__ __forceinline__ void store_all_if(float* y, const float (&value)[kStoreElements], bool valid) {
  asm volatile(
      "{\n"
      ".reg .pred valid;\n"
      "setp.ne.b32 valid, %5, 0;\n"
      "@valid st.global.v4.f32 [%0], {%1, %2, %3, %4};\n"
      "}" ::"l"(y),
      "f"(value[0]), "f"(value[1]), "f"(value[2]), "f"(value[3]), "r"(static_cast<int>(valid))
      : "memory");
}
__device__ __forceinline__ void store_elements(float* y, const float (&value)[kStoreElements], unsigned mask) {
  asm volatile(
      "{\n"
      ".reg .pred whole, some;\n"
      ".reg .b32 bit;\n"
      "setp.eq.b32 whole, %5, 15;\n"
      "@whole st.global.v4.f32 [%0], {%1, %2, %3, %4};\n"
      "and.b32 bit, %5, 1;\n"
      "setp.ne.and.b32 some, bit, 0, !whole;\n"
      "@some st.global.f32 [%0], %1;\n"
      "and.b32 bit, %5, 2;\n"
      "setp.ne.and.b32 some, bit, 0, !whole;\n"
      "@some st.global.f32 [%0 + 4], %2;\n"
      "and.b32 bit, %5, 4;\n"
      "setp.ne.and.b32 some, bit, 0, !whole;\n"
      "@some st.global.f32 [%0 + 8], %3;\n"
      "and.b32 bit, %5, 8;\n"
      "setp.ne.and.b32 some, bit, 0, !whole;\n"
      "@some st.global.f32 [%0 + 12], %4;\n"
      "}" ::"l"(y),
      "f"(value[0]), "f"(value[1]), "f"(value[2]), "f"(value[3]), "r"(mask)
      : "memory");
}
