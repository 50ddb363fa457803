// CPU model of device/tensor_copy.cuh. The engine copies, as late or as early as the rules allow.
__device__ __forceinline__ void tensor_copy_2d_to_shared(void* destination, const TensorMap* map, int i0, int i1,
                                                         Barrier* arrival) {
  jitconv_copy_tensor(destination, map, 2, i0, i1, 0, arrival);
}
__device__ __forceinline__ void tensor_copy_3d_to_shared(void* destination, const TensorMap* map, int i0, int i1,
                                                         int i2, Barrier* arrival) {
  jitconv_copy_tensor(destination, map, 3, i0, i1, i2, arrival);
}
__device__ __forceinline__ void tensor_copy_4d_to_shared(void* destination, const TensorMap* map, int i0, int i1,
                                                         int i2, int i3, Barrier* arrival) {
  jitconv_copy_tensor_4d(destination, map, i0, i1, i2, i3, arrival);
}
__device__ __forceinline__ void tensor_im2col_to_shared(void* destination, const TensorMap* map, int c, int w, int h,
                                                        int n, int right, int down, Barrier* arrival) {
  jitconv_copy_tensor_im2col(destination, map, c, w, h, n, right, down, arrival);
}
