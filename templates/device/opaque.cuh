// The same value, of which the compiler knows nothing: what follows from it is computed where it is used, not early and
// kept in registers until then.
__device__ __forceinline__ int opaque(int value) {
  asm volatile("" : "+r"(value));
  return value;
}
