// Four words of eight, from word `first` on.
__device__ __forceinline__ uint4 words_from(const unsigned (&word)[8], int first) {
  return make_uint4(word[first], word[first + 1], word[first + 2], word[first + 3]);
}
// Eight 16-bit elements of sixteen, from element `first` on.
__device__ __forceinline__ uint4 pixels_from(const unsigned (&word)[8], int first) {
  const int i = first / 2;
  if (first % 2 == 0) return make_uint4(word[i], word[i + 1], word[i + 2], word[i + 3]);
  return make_uint4(word[i] >> 16 | word[i + 1] << 16, word[i + 1] >> 16 | word[i + 2] << 16,
                    word[i + 2] >> 16 | word[i + 3] << 16, word[i + 3] >> 16 | word[i + 4] << 16);
}
