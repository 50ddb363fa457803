// A tensor as the copy engine sees it (CUtensorMap): made by the host for every launch, a parameter of the kernel.
struct alignas(64) TensorMap {
  unsigned long long words[16];
};

// Global to shared copy of a box of a tensor (cp.async.bulk.tensor, sm_90): one thread asks, nobody waits. The box
// starts at the given indices, which may lie outside: there are zeros. The first of them counts whole 16 bytes.
// `arrival` is told of the bytes of the whole box. The destination is a multiple of 128 bytes, of 1024 if the box is
// swizzled.
__device__ __forceinline__ void tensor_copy_to_shared(void* destination, const TensorMap* map, int i0, int i1,
                                                      Barrier* arrival) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
               ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(destination))), "l"(map), "r"(i0), "r"(i1),
               "r"(barrier_address(arrival))
               : "memory");
}
__device__ __forceinline__ void tensor_copy_to_shared(void* destination, const TensorMap* map, int i0, int i1, int i2,
                                                      Barrier* arrival) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];"
      ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(destination))),
      "l"(map), "r"(i0), "r"(i1), "r"(i2), "r"(barrier_address(arrival))
      : "memory");
}
