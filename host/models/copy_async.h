// CPU model of device/copy_async.cuh. The engine copies, as late or as early as the rules allow.
template <int kElements>
__device__ __forceinline__ void copy_to_shared(float* destination, const Element* source, bool valid) {
  jitconv_copy_async(destination, source, 4 * kElements, valid);
}
__device__ __forceinline__ void copy_commit() { jitconv_copy_async_commit(); }
template <int kGroups>
__device__ __forceinline__ void copy_wait() {
  jitconv_copy_async_wait(kGroups);
}
