// Global to shared copies that do not wait (cp.async, sm_80 and later, fp32 only).
// copy_to_shared<n>: n consecutive elements, or n zeros if !valid; `source` is then not read and may be any address.
// Both addresses are multiples of 4 n bytes. Copies belong to the group that the next copy_commit() closes;
// copy_wait<n>() returns when all but the n newest groups of this thread have arrived.
template <int kElements>
__device__ __forceinline__ void copy_to_shared(float* destination, const Element* source, bool valid) {
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(destination));
  const int bytes = valid ? 4 * kElements : 0;
  if constexpr (kElements == 4) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(source), "r"(bytes) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(address), "l"(source), "r"(bytes),
                 "n"(4 * kElements)
                 : "memory");
  }
}
__device__ __forceinline__ void copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kGroups>
__device__ __forceinline__ void copy_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kGroups) : "memory");
}
