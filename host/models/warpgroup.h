// CPU model of device/warpgroup.cuh. Descriptors are those of the GPU; the engine reads them.
using MatrixOperand = unsigned long long;

__device__ __forceinline__ MatrixOperand matrix_operand(const void* first, unsigned right_half) {
  constexpr unsigned long long kEightRows = 128;  // bytes
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(first));
  return (address & 0x3ffffu) >> 4 | static_cast<unsigned long long>(right_half >> 4) << 16 | (kEightRows >> 4) << 32;
}

__device__ __forceinline__ void fence_async_proxy() { jitconv_fence_async_proxy(); }

__device__ __forceinline__ void multiply_begin() { jitconv_multiply_begin(); }
__device__ __forceinline__ void multiply_commit() { jitconv_multiply_commit(); }
template <int kGroups>
__device__ __forceinline__ void multiply_wait() {
  jitconv_multiply_wait(kGroups);
}

template <int kRegisters>
__device__ __forceinline__ void shrink_registers_to() {
  jitconv_set_registers(kRegisters, 0);
}
template <int kRegisters>
__device__ __forceinline__ void grow_registers_to() {
  jitconv_set_registers(kRegisters, 1);
}
template <int kAccumulators>
__device__ __forceinline__ void settle(float (&)[kAccumulators]) {}
