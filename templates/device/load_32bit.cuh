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
