// Shared to global copy of a box of a tensor (cp.async.bulk.tensor, sm_90): one thread asks and goes on. The box starts
// at the given indices, which may lie behind the end, not before the start: what it has outside is not written. The
// first of them counts whole 16 bytes, and so does the tensor's row: what is written are whole ones. The source is a
// multiple of 128 bytes, of 1024 if the box is swizzled. Groups, waits and the fence of those
// who wrote the source are as above.
__device__ __forceinline__ void tensor_copy_to_global(const TensorMap* map, int i0, int i1, int i2, int i3,
                                                      const void* source) {
  asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.bulk_group [%0, {%1, %2, %3, %4}], [%5];" ::"l"(map),
               "r"(i0), "r"(i1), "r"(i2), "r"(i3), "r"(static_cast<unsigned>(__cvta_generic_to_shared(source)))
               : "memory");
}
