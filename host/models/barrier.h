// CPU model of device/barrier.cuh. Phases are counted by the engine; the object itself keeps nothing.
struct alignas(8) Barrier {
  unsigned long long state;
};
__device__ __forceinline__ unsigned barrier_address(const Barrier* barrier) {
  return static_cast<unsigned>(__cvta_generic_to_shared(barrier));
}
__device__ __forceinline__ void barrier_init(Barrier* barrier, int arrivals) { jitconv_phase_init(barrier, arrivals); }
__device__ __forceinline__ void barrier_init_visible() { jitconv_phase_init_visible(); }
__device__ __forceinline__ void barrier_arrive(Barrier* barrier) { jitconv_phase_arrive(barrier, 0); }
__device__ __forceinline__ void barrier_arrive_expecting(Barrier* barrier, int bytes) {
  jitconv_phase_arrive(barrier, bytes);
}
__device__ __forceinline__ void barrier_wait(Barrier* barrier, int parity) { jitconv_phase_wait(barrier, parity); }
