// sum[64][@columns@] += a[64][16] * b[@columns@][16] by one warpgroup, or sum = a * b if !accumulate (wgmma, sm_90a),
// with a in registers: lane l of warp w holds of rows 16 w + l / 4 + {0, 8} columns 2 (l % 4) + {0, 1}, in a[0] and
// a[1], and columns 8 behind these, in a[2] and a[3]. Operands are float16. The sums lie as those of matrices in
// shared memory do; a, like them, may not be touched until the multiplication is complete.
__device__ __forceinline__ void multiply(float (&sum)[@accumulators@], const unsigned (&a)[4], MatrixOperand b,
                                         int accumulate) {
  asm volatile(
      "{\n"
      ".reg .pred accumulate;\n"
      "setp.ne.b32 accumulate, %@accumulate@, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n@columns@k16.f32.f16.f16 {\n"
      @results@
      "},\n"
      "{%@a@}, %@b@, accumulate, 1, 1, 0;\n"
      "}"
      :
      @sums@
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));
}
