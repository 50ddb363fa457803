// CPU model of device/multiply_registers_f16.cuh, of every number of columns. The engine multiplies, once for the
// warpgroup.
template <int kAccumulators>
__device__ __forceinline__ void multiply(float (&sum)[kAccumulators], const unsigned (&a)[4], MatrixOperand b,
                                         int accumulate) {
  jitconv_multiply_registers(jitconv_multiply_f16, sum, kAccumulators, a, b, accumulate);
}
