// Global to shared copies that do not wait (cp.async, sm_80 and later), of elements as they are.
// copy_elements<n>: n consecutive elements, 4, 8 or 16 bytes, or n zeros if !valid; `source` is then not read and may
// be any address. Both addresses are multiples of the size. Copies belong to the group that the next copy_commit()
// closes; copy_wait<n>() returns when all but the n newest groups of this thread have arrived.
template <int kElements>
__device__ __forceinline__ void copy_elements(Element* destination, const Element* source, bool valid) {
  constexpr int kBytes = kElements * static_cast<int>(sizeof(Element));
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(destination));
  const int bytes = valid ? kBytes : 0;
  if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(source), "r"(bytes) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(address), "l"(source), "r"(bytes), "n"(kBytes)
                 : "memory");
  }
}
__device__ __forceinline__ void copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kGroups>
__device__ __forceinline__ void copy_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kGroups) : "memory");
}
