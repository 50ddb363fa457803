// sum[64][@columns@] += a[16][64]^T * b[16][@columns@] by one warpgroup, or sum = a^T * b if !accumulate
// (wgmma, sm_90a). Rows of both operands, as pixel_operand() has them, are pixels, over which is summed (MN-major).
// Operands are bfloat16; a product is exact, the sum of fp32. The sums lie as multiply() has them.
__device__ __forceinline__ void multiply_pixels(float (&sum)[@accumulators@], MatrixOperand a, MatrixOperand b,
                                                int accumulate) {
  asm volatile(
      "{\n"
      ".reg .pred accumulate;\n"
      "setp.ne.b32 accumulate, %@accumulate@, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n@columns@k16.f32.bf16.bf16 {\n"
      @results@
      "},\n"
      "%@a@, %@b@, accumulate, 1, 1, 1, 1;\n"
      "}"
      :
      @sums@
      : "l"(a), "l"(b), "r"(accumulate));
}
