// sum[64][@columns@] += a[64][8] * b[@columns@][8] by one warpgroup, or sum = a * b if !accumulate (wgmma, sm_90a).
// Operands are fp32 bit patterns rounded to TF32; a product is exact, the sum of fp32. Lane l of warp w holds of row
// 16 w + l / 4 + 8 i, columns 8 j + 2 (l % 4) + {0, 1}, in sum[4 j + 2 i + {0, 1}].
__device__ __forceinline__ void multiply(float (&sum)[@accumulators@], MatrixOperand a, MatrixOperand b,
                                         int accumulate) {
  asm volatile(
      "{\n"
      ".reg .pred accumulate;\n"
      "setp.ne.b32 accumulate, %@accumulate@, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n@columns@k8.f32.tf32.tf32 {\n"
      @results@
      "},\n"
      "%@a@, %@b@, accumulate, 1, 1;\n"
      "}"
      :
      @sums@
      : "l"(a), "l"(b), "r"(accumulate));
}
