// CPU model of device/tensor_store.cuh. The engine copies, as late or as early as the rules allow.
__device__ __forceinline__ void tensor_copy_to_global(const TensorMap* map, int i0, int i1, int i2, int i3,
                                                      const void* source) {
  jitconv_store_tensor(map, i0, i1, i2, i3, source);
}
