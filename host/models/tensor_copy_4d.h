// CPU model of device/tensor_copy_4d.cuh. The engine copies, as late or as early as the rules allow.
__device__ __forceinline__ void tensor_copy_to_shared(void* destination, const TensorMap* map, int i0, int i1, int i2,
                                                      int i3, Barrier* arrival) {
  jitconv_copy_tensor_4d(destination, map, i0, i1, i2, i3, arrival);
}
