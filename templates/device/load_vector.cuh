// 16 bytes of consecutive elements if valid, else zeros, and then source may be any address; it is a multiple of 16
// bytes otherwise. One predicated instruction, issued where it is written: loads of a batch all leave before the first
// is waited for.
__device__ __forceinline__ uint4 load_vector_if(const Element* source, bool valid) {
  uint4 result;
  asm volatile(
      "{\n"
      ".reg .pred valid;\n"
      "setp.ne.b32 valid, %5, 0;\n"
      "mov.b32 %0, 0;\n"
      "mov.b32 %1, 0;\n"
      "mov.b32 %2, 0;\n"
      "mov.b32 %3, 0;\n"
      "@valid ld.global.nc.v4.b32 {%0, %1, %2, %3}, [%4];\n"
      "}"
      : "=&r"(result.x), "=&r"(result.y), "=&r"(result.z), "=&r"(result.w)
      : "l"(source), "r"(static_cast<int>(valid)));
  return result;
}
