// tensor_copy_to_shared() of a tensor of four axes, swizzled or not.
__device__ __forceinline__ void tensor_copy_to_shared(void* destination, const TensorMap* map, int i0, int i1, int i2,
                                                      int i3, Barrier* arrival) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], [%6];"
      ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(destination))),
      "l"(map), "r"(i0), "r"(i1), "r"(i2), "r"(i3), "r"(barrier_address(arrival))
      : "memory");
}
