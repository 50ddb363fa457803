// source[kOffset] if valid, else 0, and then source may be any address. One predicated instruction, issued where it is
// written: loads of a batch all leave before the first is waited for.
template <long long kOffset>
__device__ __forceinline__ Element load_if(const Element* source, bool valid) {
  Element result;
  asm volatile(
      "{\n"
      ".reg .pred valid;\n"
      "setp.ne.b32 valid, %2, 0;\n"
      "mov.b32 %0, 0;\n"
      "@valid ld.global.nc.b32 %0, [%1 + %3];\n"
      "}"
      : "=&f"(result)
      : "l"(source), "r"(static_cast<int>(valid)), "n"(4 * kOffset));
  return result;
}
// source[kOffset] and the next element, which lie in one word of 8 bytes, if valid, else 0 and 0.
template <long long kOffset>
__device__ __forceinline__ void load_pair_if(const Element* source, bool valid, Element& first, Element& second) {
  asm volatile(
      "{\n"
      ".reg .pred valid;\n"
      "setp.ne.b32 valid, %3, 0;\n"
      "mov.b32 %0, 0;\n"
      "mov.b32 %1, 0;\n"
      "@valid ld.global.nc.v2.b32 {%0, %1}, [%2 + %4];\n"
      "}"
      : "=&f"(first), "=&f"(second)
      : "l"(source), "r"(static_cast<int>(valid)), "n"(4 * kOffset));
}
