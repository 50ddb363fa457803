// Accumulators behind the multiply_wait() that covers their multiplications. To the compiler, those are complete when
// they are issued; without this it may compute with the sums before they are there.
template <int kAccumulators>
__device__ __forceinline__ void settle(float (&sum)[kAccumulators]) {
#pragma unroll
  for (int i = 0; i < kAccumulators; ++i) asm volatile("" : "+f"(sum[i]));
}
