// Access patterns whose requests, sectors and wavefronts follow from arithmetic. One warp unless said otherwise; x and y
// start on 256 bytes.
using Element = float;
#include "device/copy_async.cuh"

// --- global memory
__device__ __forceinline__ int lane() { return threadIdx.x % 32; }

extern "C" __global__ void coalesced(const float* x, float* y) { y[threadIdx.x] = x[threadIdx.x]; }
extern "C" __global__ void strided(const float* x, float* y) { y[2 * lane()] = x[2 * lane()]; }
extern "C" __global__ void shifted(const float* x, float* y) { y[lane() + 1] = x[lane() + 1]; }
extern "C" __global__ void reversed(const float* x, float* y) { y[31 - lane()] = x[31 - lane()]; }
extern "C" __global__ void broadcast(const float* x, float* y) {
  const float value = x[7];
  if (lane() == 0) y[0] = value;
}
extern "C" __global__ void one_per_sector(const float* x, float* y) { y[8 * (lane() % 31)] = x[8 * (lane() % 31)]; }
// Quarter warps write 16 bytes each of eight sectors, and the other halves in a second request.
extern "C" __global__ void half_sectors(const float* x, float* y) {
  const int first = lane() / 4 * 8 + lane() % 4;
  y[first] = 1.0f;
  y[first + 4] = 2.0f;
}
extern "C" __global__ void vectors(const float* x, float* y) {
  *reinterpret_cast<float4*>(y + 4 * lane()) = *reinterpret_cast<const float4*>(x + 4 * lane());
}
extern "C" __global__ void half_of_the_lanes(const float* x, float* y) {
  if (lane() < 16) y[lane()] = x[lane()];
}
// Both sides of the branch make a request; after it the warp is one again.
extern "C" __global__ void branch(const float* x, float* y) {
  float value;
  if (lane() % 2 == 0) {
    value = x[lane()] * 3.0f;
    y[128 + lane()] = value;
  } else {
    value = x[100 + lane()] + 5.0f;
    y[192 + lane()] = value;
  }
  y[lane()] = value;
}
// Lane i makes i iterations: 31 requests of fewer and fewer lanes, then one of all.
extern "C" __global__ void uneven_loop(const float* x, float* y) {
  float sum = 0.0f;
#pragma unroll 1
  for (int i = 0; i < lane(); ++i) sum += x[i];
  y[lane()] = sum;
}

// --- shared memory
extern "C" __global__ void bank_per_lane(const float* x, float* y) {
  extern __shared__ __align__(128) float shared[];
  shared[lane()] = 1.0f;
  __syncwarp();
  if (shared[31 - lane()] == 9.0f) y[0] = 1.0f;
}
template <int kStride>
__device__ __forceinline__ void stride(float* y) {
  extern __shared__ __align__(128) float shared[];
  shared[lane() * kStride] = 1.0f;
  __syncwarp();
  if (shared[(31 - lane()) * kStride] == 9.0f) y[0] = 1.0f;
}
extern "C" __global__ void stride_2(const float* x, float* y) { stride<2>(y); }
extern "C" __global__ void stride_32(const float* x, float* y) { stride<32>(y); }
extern "C" __global__ void stride_33(const float* x, float* y) { stride<33>(y); }
extern "C" __global__ void one_word(const float* x, float* y) {
  extern __shared__ __align__(128) float shared[];
  if (lane() == 0) shared[5] = 1.0f;
  __syncwarp();
  if (shared[5] == 9.0f) y[0] = 1.0f;
}
extern "C" __global__ void pairs(const float* x, float* y) {
  extern __shared__ __align__(128) float shared[];
  *reinterpret_cast<float2*>(shared + 2 * lane()) = float2{1.0f, 2.0f};
}
extern "C" __global__ void quads(const float* x, float* y) {
  extern __shared__ __align__(128) float shared[];
  *reinterpret_cast<float4*>(shared + 4 * lane()) = float4{1.0f, 2.0f, 3.0f, 4.0f};
}
// Rows of 8 quads: within a quarter warp every lane starts at bank 0.
extern "C" __global__ void quads_of_one_bank(const float* x, float* y) {
  extern __shared__ __align__(128) float shared[];
  *reinterpret_cast<float4*>(shared + 32 * lane()) = float4{1.0f, 2.0f, 3.0f, 4.0f};
}

// --- both
extern "C" __global__ void copies(const float* x, float* y) {
  extern __shared__ __align__(128) float shared[];
  // The last 8 lanes copy zeros and read nothing.
  copy_to_shared<4>(shared + 4 * lane(), x + 4 * lane(), lane() < 24);
  copy_commit();
  copy_wait<0>();
}
extern "C" __global__ void fmas(const float* x, float* y) {
  float sum = x[lane()];
  sum = fmaf(sum, sum, 1.0f);
  sum = fmaf(sum, sum, 2.0f);
  if (lane() < 4) sum = fmaf(sum, sum, 3.0f);
  y[lane()] = sum;
}
