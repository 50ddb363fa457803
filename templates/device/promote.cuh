// Adds accumulators of tensor cores, whose sums are truncated, to sums in registers, which are rounded.
template <int kAccumulators>
__device__ __forceinline__ void promote(float (&sum)[kAccumulators], const float (&partial)[kAccumulators]) {
#pragma unroll
  for (int i = 0; i < kAccumulators; ++i) sum[i] += partial[i];
}
