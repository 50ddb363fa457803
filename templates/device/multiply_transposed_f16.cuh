// sum[64][@columns@] += a[16][64]^T * b[@columns@][16] by one warpgroup, or sum = a^T * b if !accumulate
// (wgmma, sm_90a). Rows of a, as pixel_operand() has them, are channels, over which is summed (MN-major); b is as
// multiply() has it.
// Operands are fp16; a product is exact, the sum of fp32. Lane l of warp w holds of row 16 w + l / 4 + 8 i,
// columns 8 j + 2 (l % 4) + {0, 1}, in sum[4 j + 2 i + {0, 1}].
__device__ __forceinline__ void multiply_transposed(float (&sum)[@accumulators@], MatrixOperand a, MatrixOperand b,
                                                    int accumulate) {
  asm volatile(
      "{\n"
      ".reg .pred accumulate;\n"
      "setp.ne.b32 accumulate, %@accumulate@, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n@columns@k16.f32.f16.f16 {\n"
      @results@
      "},\n"
      "%@a@, %@b@, accumulate, 1, 1, 1, 0;\n"
      "}"
      :
      @sums@
      : "l"(a), "l"(b), "r"(accumulate));
}
