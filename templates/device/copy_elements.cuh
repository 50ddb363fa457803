// Global to shared copies through registers, of elements as they are: for elements that only lie at multiples of 2
// bytes, and for GPUs without cp.async. Same contract as copy_elements_async.cuh, except that a copy has arrived when
// copy_elements() returns.
template <int kElements>
__device__ __forceinline__ void copy_elements(Element* destination, const Element* source, bool valid) {
  ElementVector<kElements> values = {};
  if (valid) values = *reinterpret_cast<const ElementVector<kElements>*>(source);
  *reinterpret_cast<ElementVector<kElements>*>(destination) = values;
}
__device__ __forceinline__ void copy_commit() {}
template <int kGroups>
__device__ __forceinline__ void copy_wait() {}
