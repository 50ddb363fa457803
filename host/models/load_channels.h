// CPU model of device/load_channels.cuh.
template <int kBytes>
__device__ __forceinline__ uint4 load_channels(const Element* source, int channels) {
  constexpr int kElements = kBytes / static_cast<int>(sizeof(Element));
  uint4 result = make_uint4(0, 0, 0, 0);
  for (int i = 0; i < 16 / kBytes && i * kElements < channels; ++i)
    jitconv_copy_word<kBytes>(reinterpret_cast<char*>(&result) + i * kBytes, source + i * kElements);
  return result;
}
