// CPU model of device/copy_elements_async.cuh. The engine copies, as late or as early as the rules allow.
template <int kElements>
__device__ __forceinline__ void copy_elements(Element* destination, const Element* source, bool valid) {
  jitconv_copy_async(destination, source, kElements * static_cast<int>(sizeof(Element)), valid);
}
__device__ __forceinline__ void copy_commit() { jitconv_copy_async_commit(); }
template <int kGroups>
__device__ __forceinline__ void copy_wait() {
  jitconv_copy_async_wait(kGroups);
}
