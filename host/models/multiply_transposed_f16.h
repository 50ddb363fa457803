// CPU model of device/multiply_transposed_f16.cuh, of every number of columns. The engine multiplies, once for the
// warpgroup.
template <int kAccumulators>
__device__ __forceinline__ void multiply_transposed(float (&sum)[kAccumulators], MatrixOperand a, MatrixOperand b,
                                                    int accumulate) {
  jitconv_multiply_transposed(jitconv_multiply_f16, sum, kAccumulators, a, b, accumulate);
}
