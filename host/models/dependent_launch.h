// CPU model of device/dependent_launch.cuh. Kernels run one after the other here: the one before has always finished.
__device__ __forceinline__ void let_next_kernel_start() {}
__device__ __forceinline__ void wait_for_previous_kernel() {}
