// Global to shared copies through registers, converting to fp32: for 16-bit elements, and for GPUs without cp.async.
// Same contract as copy_async.cuh, except that a copy has arrived when copy_to_shared() returns.
template <int kElements>
__device__ __forceinline__ void copy_to_shared(float* destination, const Element* source, bool valid) {
  if (valid) {
    const ElementVector<kElements> values = *reinterpret_cast<const ElementVector<kElements>*>(source);
#pragma unroll
    for (int i = 0; i < kElements; ++i) destination[i] = to_float(values.at[i]);
  } else {
#pragma unroll
    for (int i = 0; i < kElements; ++i) destination[i] = 0.0f;
  }
}
__device__ __forceinline__ void copy_commit() {}
template <int kGroups>
__device__ __forceinline__ void copy_wait() {}
