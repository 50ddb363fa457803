// CPU model of device/opaque.cuh.
__device__ __forceinline__ int opaque(int value) { return value; }
