// Barriers in shared memory (mbarrier, sm_90). A phase is complete when the expected number of arrivals has come and
// the bytes they announced have been copied. Phases are numbered from 0; barrier_wait(b, n % 2) returns once phase n is
// complete, if the caller never lags behind by two phases. What arriving threads wrote before is then visible.
struct alignas(8) Barrier {
  unsigned long long state;
};
__device__ __forceinline__ unsigned barrier_address(const Barrier* barrier) {
  return static_cast<unsigned>(__cvta_generic_to_shared(barrier));
}
// By one thread; barrier_init_visible() by the same thread, then __syncthreads(), before anybody uses the barrier.
__device__ __forceinline__ void barrier_init(Barrier* barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier_address(barrier)), "r"(arrivals) : "memory");
}
__device__ __forceinline__ void barrier_init_visible() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ __forceinline__ void barrier_arrive(Barrier* barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier_address(barrier)) : "memory");
}
// Arrives, and holds the phase open until bulk copies have brought `bytes` more.
__device__ __forceinline__ void barrier_arrive_expecting(Barrier* barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier_address(barrier)), "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void barrier_wait(Barrier* barrier, int parity) {
  asm volatile(
      "{\n"
      ".reg .pred complete;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 complete, [%0], %1;\n"
      "@!complete bra again;\n"
      "}" ::"r"(barrier_address(barrier)),
      "r"(parity)
      : "memory");
}
