// CPU model of device/swizzled_operand.cuh. Descriptors are those of the GPU; the engine reads them.
template <int kRowBytes>
__device__ __forceinline__ MatrixOperand swizzled_operand(const void* first) {
  constexpr unsigned long long kEightRows = 8 * kRowBytes, kSwizzle = kRowBytes == 128 ? 1 : kRowBytes == 64 ? 2 : 3;
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(first));
  return (address & 0x3ffffu) >> 4 | (kEightRows >> 4) << 32 | kSwizzle << 62;
}
