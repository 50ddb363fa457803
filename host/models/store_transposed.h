// CPU model of device/store_transposed.cuh: a lane gathers the column whose place it names, and writes it by one
// access.
__device__ __forceinline__ void store_transposed(void* column, const unsigned (&matrix)[4]) {
  const unsigned long low = matrix[0] | static_cast<unsigned long>(matrix[1]) << 32;
  const unsigned long high = matrix[2] | static_cast<unsigned long>(matrix[3]) << 32;
  const unsigned lane = jitconv_lane();
  unsigned element[8];
  for (int row = 0; row < 8; ++row) {
    const int source = row * 4 + static_cast<int>(lane % 8 / 2);
    const unsigned long first = __shfl_sync(0xffffffffu, low, source), second = __shfl_sync(0xffffffffu, high, source);
    const unsigned pair = static_cast<unsigned>((lane < 16 ? first : second) >> (lane / 8 % 2 * 32));
    element[row] = pair >> (lane % 2 * 16) & 0xffffu;
  }
  const uint4 value = make_uint4(element[0] | element[1] << 16, element[2] | element[3] << 16,
                                 element[4] | element[5] << 16, element[6] | element[7] << 16);
  jitconv_copy_word<16>(column, &value);
}
