// A matrix as a swizzled box of a tensor lies there: rows of 128 bytes, of which a multiplication takes 32, the first
// unless 2, 4 or 6 is added. The box starts on a multiple of 1024 bytes, `first` on one of its eighth rows.
__device__ __forceinline__ MatrixOperand swizzled_operand(const void* first) {
  constexpr unsigned long long kEightRows = 1024, kSwizzled = 1ull << 62;
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(first));
  return (address & 0x3ffffu) >> 4 | (kEightRows >> 4) << 32 | kSwizzled;
}
