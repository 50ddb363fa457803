// CPU model of device/load_vector.cuh.
__device__ __forceinline__ uint4 load_vector_if(const Element* source, bool valid) {
  uint4 result = make_uint4(0, 0, 0, 0);
  if (valid) jitconv_copy_word<16>(&result, source);
  return result;
}
