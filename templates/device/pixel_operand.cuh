// A matrix whose rows are pixels, over which is summed, as TMA brings 16-bit channels of an NHWC tensor,
// swizzled: rows of kRowBytes, 32, 64 or 128, one after the other. A multiplication takes 16 rows, eight from `first`
// on and eight that begin `next_eight` bytes behind it, and of each as many channels as it has rows or columns. Those
// that a row does not hold are those of the row `next_channels` bytes behind it, and so on: other channels, or other
// pixels. What was copied starts on a multiple of 1024 bytes; `first` is any row of it; distances are whole rows.
template <int kRowBytes>
__device__ __forceinline__ MatrixOperand pixel_operand(const void* first, unsigned next_channels,
                                                       unsigned next_eight) {
  constexpr unsigned long long kSwizzle = kRowBytes == 128 ? 1 : kRowBytes == 64 ? 2 : 3;
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(first));
  return (address & 0x3ffffu) >> 4 | static_cast<unsigned long long>(next_channels >> 4) << 16 |
         static_cast<unsigned long long>(next_eight >> 4) << 32 | kSwizzle << 62;
}
