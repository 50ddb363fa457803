// Element: one value of x, w, bias, residual or y in memory. Here fp32.
using Element = float;
__device__ __forceinline__ float to_float(Element value) { return value; }
__device__ __forceinline__ Element from_float(float value) { return value; }
