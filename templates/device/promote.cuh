// Adds accumulators of tensor cores to sums in registers, which are rounded. Tensor cores truncate when they add: so
// accumulators begin with zero and with the products of smaller parts, whose sums are small, and take few products.
template <int kAccumulators>
__device__ __forceinline__ void promote(float (&sum)[kAccumulators], const float (&partial)[kAccumulators]) {
#pragma unroll
  for (int i = 0; i < kAccumulators; ++i) sum[i] += partial[i];
}
