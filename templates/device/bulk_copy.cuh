// Global to shared copy of a whole block of memory by TMA (cp.async.bulk, sm_90): one thread asks, nobody
// waits; `arrival` is told of the bytes, which its current phase must expect. Addresses and size are multiples of 16.
// The copy writes through the async proxy, which is how warpgroup multiplications read.
__device__ __forceinline__ void bulk_copy_to_shared(void* destination, const void* source, int bytes,
                                                    Barrier* arrival) {
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                   static_cast<unsigned>(__cvta_generic_to_shared(destination))),
               "l"(source), "r"(bytes), "r"(barrier_address(arrival))
               : "memory");
}
