// CPU model of device/warpgroup_sync.cuh.
__device__ __forceinline__ void warpgroup_sync(int barrier) { jitconv_barrier(static_cast<unsigned>(barrier), 128); }
