// The first `channels` of the elements in 16 bytes, and zeros in place of the others. If there are any, source is a
// multiple of kBytes, 8, 4 or 2, and they fill as many; else it may be any address. Predicated instructions, issued
// where they are written: loads of a batch all leave before the first is waited for.
template <int kBytes>
__device__ __forceinline__ uint4 load_channels(const Element* source, int channels) {
  constexpr int kElements = kBytes / static_cast<int>(sizeof(Element));
  uint4 result;
  if constexpr (kBytes == 8) {
    asm volatile(
        "{\n"
        ".reg .pred has<2>;\n"
        "setp.gt.s32 has0, %5, 0;\n"
        "setp.gt.s32 has1, %5, %6;\n"
        "mov.b32 %0, 0;\n"
        "mov.b32 %1, 0;\n"
        "mov.b32 %2, 0;\n"
        "mov.b32 %3, 0;\n"
        "@has0 ld.global.nc.v2.b32 {%0, %1}, [%4];\n"
        "@has1 ld.global.nc.v2.b32 {%2, %3}, [%4 + 8];\n"
        "}"
        : "=&r"(result.x), "=&r"(result.y), "=&r"(result.z), "=&r"(result.w)
        : "l"(source), "r"(channels), "n"(kElements));
  } else if constexpr (kBytes == 4) {
    asm volatile(
        "{\n"
        ".reg .pred has<4>;\n"
        "setp.gt.s32 has0, %5, 0;\n"
        "setp.gt.s32 has1, %5, %6;\n"
        "setp.gt.s32 has2, %5, %7;\n"
        "setp.gt.s32 has3, %5, %8;\n"
        "mov.b32 %0, 0;\n"
        "mov.b32 %1, 0;\n"
        "mov.b32 %2, 0;\n"
        "mov.b32 %3, 0;\n"
        "@has0 ld.global.nc.b32 %0, [%4];\n"
        "@has1 ld.global.nc.b32 %1, [%4 + 4];\n"
        "@has2 ld.global.nc.b32 %2, [%4 + 8];\n"
        "@has3 ld.global.nc.b32 %3, [%4 + 12];\n"
        "}"
        : "=&r"(result.x), "=&r"(result.y), "=&r"(result.z), "=&r"(result.w)
        : "l"(source), "r"(channels), "n"(kElements), "n"(2 * kElements), "n"(3 * kElements));
  } else {
    unsigned short element[8];
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      asm volatile(
          "{\n"
          ".reg .pred has;\n"
          "setp.gt.s32 has, %2, %3;\n"
          "mov.b16 %0, 0;\n"
          "@has ld.global.nc.b16 %0, [%1];\n"
          "}"
          : "=&h"(element[i])
          : "l"(source + i), "r"(channels), "r"(i));
    }
    result = make_uint4(element[0] | element[1] << 16, element[2] | element[3] << 16, element[4] | element[5] << 16,
                        element[6] | element[7] << 16);
  }
  return result;
}
