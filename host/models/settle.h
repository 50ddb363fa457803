// CPU model of device/settle.cuh.
template <int kAccumulators>
__device__ __forceinline__ void settle(float (&)[kAccumulators]) {}
