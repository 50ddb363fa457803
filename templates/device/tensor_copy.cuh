// Global to shared copy of a box of a tensor (cp.async.bulk.tensor, sm_90): one thread asks, nobody waits. The box
// starts at the given indices, which may lie outside: there are zeros. The first of them counts whole 16 bytes.
// `arrival` is told of the bytes of the whole box. The destination is a multiple of 128 bytes, of 1024 if the box is
// swizzled.

__device__ __forceinline__ void tensor_copy_2d_to_shared(void* destination, const TensorMap* map, int i0, int i1,
                                                         Barrier* arrival) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
               ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(destination))), "l"(map), "r"(i0), "r"(i1),
               "r"(barrier_address(arrival))
               : "memory");
}
__device__ __forceinline__ void tensor_copy_3d_to_shared(void* destination, const TensorMap* map, int i0, int i1,
                                                         int i2, Barrier* arrival) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];"
      ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(destination))),
      "l"(map), "r"(i0), "r"(i1), "r"(i2), "r"(barrier_address(arrival))
      : "memory");
}
__device__ __forceinline__ void tensor_copy_4d_to_shared(void* destination, const TensorMap* map, int i0, int i1,
                                                         int i2, int i3, Barrier* arrival) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], [%6];"
      ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(destination))),
      "l"(map), "r"(i0), "r"(i1), "r"(i2), "r"(i3), "r"(barrier_address(arrival))
      : "memory");
}
// The same of pixels of an NHWC tensor whose map is in im2col mode: the first is (n, h, w), those that follow are the
// next along w, then h, then n. Of each come the channels from c on, of the pixel `right` and `down` of it.
__device__ __forceinline__ void tensor_im2col_to_shared(void* destination, const TensorMap* map, int c, int w, int h,
                                                        int n, int right, int down, Barrier* arrival) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%2, %3, %4, %5}], [%6], {%7, %8};"
      ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(destination))),
      "l"(map), "r"(c), "r"(w), "r"(h), "r"(n), "r"(barrier_address(arrival)),
      "h"(static_cast<unsigned short>(right)), "h"(static_cast<unsigned short>(down))
      : "memory");
}
