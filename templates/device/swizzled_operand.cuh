// A matrix as TMA brings it, swizzled: rows of kRowBytes, 32, 64 or 128, of which a multiplication takes
// 32, the first unless 2, 4 or 6 is added. What was copied starts on a multiple of 1024 bytes; `first` is any row of it.
template <int kRowBytes>
__device__ __forceinline__ MatrixOperand swizzled_operand(const void* first) {
  constexpr unsigned long long kEightRows = 8 * kRowBytes, kSwizzle = kRowBytes == 128 ? 1 : kRowBytes == 64 ? 2 : 3;
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(first));
  return (address & 0x3ffffu) >> 4 | (kEightRows >> 4) << 32 | kSwizzle << 62;
}
