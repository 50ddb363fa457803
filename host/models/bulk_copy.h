// CPU model of device/bulk_copy.cuh. The engine copies, as late or as early as the rules allow.
__device__ __forceinline__ void bulk_copy_to_shared(void* destination, const void* source, int bytes,
                                                    Barrier* arrival) {
  jitconv_copy_bulk(destination, source, bytes, arrival);
}
