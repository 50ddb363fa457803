// tools/device_kernels.cu as C++, for a grid of one thread. Include it inside a namespace of its own, once per program.
// No include guard and no includes: <bit>, <cmath> and <cstdint> must be there already.

struct Extent {
  unsigned x;
};
constexpr Extent blockIdx{0}, threadIdx{0}, blockDim{1}, gridDim{1};
inline std::uint32_t __float_as_uint(float value) { return std::bit_cast<std::uint32_t>(value); }
inline float __uint_as_float(std::uint32_t bits) { return std::bit_cast<float>(bits); }
inline void atomicAdd(unsigned long long* sum, unsigned long long value) { *sum += value; }

#define __global__
#define __device__
#define __forceinline__ inline
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#include "tools/device_kernels.cu"
#pragma GCC diagnostic pop
#undef __global__
#undef __device__
#undef __forceinline__
