// Eight consecutive elements of y: all or none, or those whose bit of `mask` is set. The address is a multiple of 16
// bytes. No branches: a warp's stores leave one after the other.
constexpr int kStoreElements = 8;
__device__ __forceinline__ void store_all_if(Element* y, uint4 value, bool valid) {
  asm volatile(
      "{\n"
      ".reg .pred valid;\n"
      "setp.ne.b32 valid, %5, 0;\n"
      "@valid st.global.v4.b32 [%0], {%1, %2, %3, %4};\n"
      "}" ::"l"(y),
      "r"(value.x), "r"(value.y), "r"(value.z), "r"(value.w), "r"(static_cast<int>(valid))
      : "memory");
}
__device__ __forceinline__ void store_elements(Element* y, uint4 value, unsigned mask) {
  asm volatile(
      "{\n"
      ".reg .pred whole, some;\n"
      ".reg .b32 bit;\n"
      ".reg .b16 low, high;\n"
      "setp.eq.b32 whole, %5, 255;\n"
      "@whole st.global.v4.b32 [%0], {%1, %2, %3, %4};\n"
      "and.b32 bit, %5, 1;\n"
      "setp.ne.and.b32 some, bit, 0, !whole;\n"
      "mov.b32 {low, high}, %1;\n"
      "@some st.global.b16 [%0 + 0], low;\n"
      "and.b32 bit, %5, 2;\n"
      "setp.ne.and.b32 some, bit, 0, !whole;\n"
      "mov.b32 {low, high}, %1;\n"
      "@some st.global.b16 [%0 + 2], high;\n"
      "and.b32 bit, %5, 4;\n"
      "setp.ne.and.b32 some, bit, 0, !whole;\n"
      "mov.b32 {low, high}, %2;\n"
      "@some st.global.b16 [%0 + 4], low;\n"
      "and.b32 bit, %5, 8;\n"
      "setp.ne.and.b32 some, bit, 0, !whole;\n"
      "mov.b32 {low, high}, %2;\n"
      "@some st.global.b16 [%0 + 6], high;\n"
      "and.b32 bit, %5, 16;\n"
      "setp.ne.and.b32 some, bit, 0, !whole;\n"
      "mov.b32 {low, high}, %3;\n"
      "@some st.global.b16 [%0 + 8], low;\n"
      "and.b32 bit, %5, 32;\n"
      "setp.ne.and.b32 some, bit, 0, !whole;\n"
      "mov.b32 {low, high}, %3;\n"
      "@some st.global.b16 [%0 + 10], high;\n"
      "and.b32 bit, %5, 64;\n"
      "setp.ne.and.b32 some, bit, 0, !whole;\n"
      "mov.b32 {low, high}, %4;\n"
      "@some st.global.b16 [%0 + 12], low;\n"
      "and.b32 bit, %5, 128;\n"
      "setp.ne.and.b32 some, bit, 0, !whole;\n"
      "mov.b32 {low, high}, %4;\n"
      "@some st.global.b16 [%0 + 14], high;\n"
      "}" ::"l"(y),
      "r"(value.x), "r"(value.y), "r"(value.z), "r"(value.w), "r"(mask)
      : "memory");
}
__device__ __forceinline__ uint4 elements_of(const float (&value)[kStoreElements]) {
  return make_uint4(element_pair(value[0], value[1]), element_pair(value[2], value[3]),
                    element_pair(value[4], value[5]), element_pair(value[6], value[7]));
}
__device__ __forceinline__ void store_all_if(Element* y, const float (&value)[kStoreElements], bool valid) {
  store_all_if(y, elements_of(value), valid);
}
__device__ __forceinline__ void store_elements(Element* y, const float (&value)[kStoreElements], unsigned mask) {
  store_elements(y, elements_of(value), mask);
}
