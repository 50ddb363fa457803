// sum[64][@columns@] += a[64][16] * b[16][@columns@] by one warpgroup, or sum = a * b if !accumulate (wgmma, sm_90a).
// a is as multiply() of other files has it (K-major), and rows of b, as pixel_operand() has them, are channels, over
// which is summed; what lies along them are pixels of a plane (MN-major).
// Operands are bfloat16; a product is exact, the sum of fp32. Lane l of warp w holds of row 16 w + l / 4 + 8 i,
// columns 8 j + 2 (l % 4) + {0, 1}, in sum[4 j + 2 i + {0, 1}].
__device__ __forceinline__ void multiply(float (&sum)[@accumulators@], MatrixOperand a, MatrixOperand b,
                                         int accumulate) {
  asm volatile(
      "{\n"
      ".reg .pred accumulate;\n"
      "setp.ne.b32 accumulate, %@accumulate@, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n@columns@k16.f32.bf16.bf16 {\n"
      @results@
      "},\n"
      "%@a@, %@b@, accumulate, 1, 1, 0, 1;\n"
      "}"
      :
      @sums@
      : "l"(a), "l"(b), "r"(accumulate));
}
