// CPU model of device/multiply_tf32.cuh, of every number of columns. The engine multiplies, once for the warpgroup.
template <int kAccumulators>
__device__ __forceinline__ void multiply(float (&sum)[kAccumulators], MatrixOperand a, MatrixOperand b,
                                         int accumulate) {
  jitconv_multiply(jitconv_multiply_tf32, sum, kAccumulators, a, b, accumulate);
}
