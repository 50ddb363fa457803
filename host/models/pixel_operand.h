// CPU model of device/pixel_operand.cuh. Descriptors are those of the GPU; the engine reads them.
template <int kRowBytes>
__device__ __forceinline__ MatrixOperand pixel_operand(const void* first, unsigned next_channels, unsigned next_eight) {
  constexpr unsigned long long kSwizzle = kRowBytes == 128 ? 1 : kRowBytes == 64 ? 2 : 3;
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(first));
  return (address & 0x3ffffu) >> 4 | static_cast<unsigned long long>(next_channels >> 4) << 16 |
         static_cast<unsigned long long>(next_eight >> 4) << 32 | kSwizzle << 62;
}
