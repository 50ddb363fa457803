// ---------------------------------------------------------------------------------------------------------------------
// The harness: allocates, fills with seeded data, launches the kernel above, checks sampled outputs against a loop in
// double, times with events. All of it is in namespace harness: the kernel has names of its own.
// ---------------------------------------------------------------------------------------------------------------------
#define HARNESS_CALL(call)                                                                                    \
  do {                                                                                                        \
    const cudaError_t harness_status = (call);                                                                \
    if (harness_status != cudaSuccess) {                                                                      \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(harness_status)); \
      std::exit(1);                                                                                           \
    }                                                                                                         \
  } while (0)

namespace harness {

// A pointer of whatever type a kernel wants; to a kernel that wants a tensor map it is none.
struct Pointer {
  const void* address;
  template <typename T>
  operator T*() const {
    return static_cast<T*>(const_cast<void*>(address));
  }
};

template <typename Function>
inline Function driver_function(const char* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found;
  HARNESS_CALL(cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &found));
  if (found != cudaDriverEntryPointSuccess) {
    std::fprintf(stderr, "the driver has no %s\n", name);
    std::exit(1);
  }
  return reinterpret_cast<Function>(function);
}

inline void require_encoded(CUresult status, const char* name) {
  if (status == CUDA_SUCCESS) return;
  std::fprintf(stderr, "%s: error %d\n", name, static_cast<int>(status));
  std::exit(1);
}

// A tensor as TMA sees it: extents and boxes in elements, from the innermost axis.
template <typename Map, int kRank>
inline Map tensor_map(const void* address, CUtensorMapDataType type, CUtensorMapSwizzle swizzle,
                      const cuuint64_t (&extents)[kRank], const cuuint64_t (&stride_bytes)[kRank - 1],
                      const cuuint32_t (&box)[kRank]) {
  static_assert(sizeof(Map) == sizeof(CUtensorMap));
  static const auto encode = driver_function<decltype(&cuTensorMapEncodeTiled)>("cuTensorMapEncodeTiled");
  cuuint32_t element_strides[kRank];
  std::fill_n(element_strides, kRank, 1u);
  Map map;
  require_encoded(encode(reinterpret_cast<CUtensorMap*>(&map), type, kRank, const_cast<void*>(address), extents,
                         stride_bytes, box, element_strides, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                         CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
                  "cuTensorMapEncodeTiled");
  return map;
}

// The same of an NHWC tensor whose pixels it walks over, from `lower` to before `upper` of the end, both {w, h}.
template <typename Map>
inline Map tensor_im2col(const void* address, CUtensorMapDataType type, CUtensorMapSwizzle swizzle,
                       const cuuint64_t (&extents)[4], const cuuint64_t (&stride_bytes)[3], cuuint32_t channels,
                       cuuint32_t pixels, const int (&lower)[2], const int (&upper)[2], const cuuint32_t (&stride)[2]) {
  static_assert(sizeof(Map) == sizeof(CUtensorMap));
  static const auto encode = driver_function<decltype(&cuTensorMapEncodeIm2col)>("cuTensorMapEncodeIm2col");
  const cuuint32_t element_strides[] = {1, stride[0], stride[1], 1};
  Map map;
  require_encoded(encode(reinterpret_cast<CUtensorMap*>(&map), type, 4, const_cast<void*>(address), extents,
                         stride_bytes, lower, upper, channels, pixels, element_strides, CU_TENSOR_MAP_INTERLEAVE_NONE,
                         swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
                  "cuTensorMapEncodeIm2col");
  return map;
}

// Types are checked: what a kernel does not take does not compile.
template <typename... Parameters, typename... Arguments>
inline void enqueue(void (*kernel)(Parameters...), dim3 grid, unsigned threads, unsigned shared_bytes,
                    cudaStream_t stream, bool early, const Arguments&... arguments) {
  cudaLaunchAttribute overlap = {};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  config.attrs = &overlap;
  config.numAttrs = early ? 1 : 0;
  HARNESS_CALL(cudaLaunchKernelEx(&config, kernel, arguments...));
}

}  // namespace harness

// The convolution's numbers and launch come here.

namespace harness {

constexpr unsigned long long kSeedX = 1, kSeedW = 2, kSeedBias = 3, kSeedResidual = 4;

// Multiples of 1/128 in (-1, 1): exact in every tensor type, so that both sides see the same operands.
__host__ __device__ inline float value(unsigned long long seed, unsigned long long index) {
  unsigned long long z = (seed << 56) + index * 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  z ^= z >> 31;
  return static_cast<float>(static_cast<int>(z % 255u) - 127) / 128.0f;
}

inline double to_double(float v) { return v; }
inline double to_double(__half v) { return static_cast<double>(__half2float(v)); }
inline double to_double(__nv_bfloat16 v) { return static_cast<double>(__bfloat162float(v)); }
__device__ inline void store(float* p, float v) { *p = v; }
__device__ inline void store(__half* p, float v) { *p = __float2half_rn(v); }
__device__ inline void store(__nv_bfloat16* p, float v) { *p = __float2bfloat16_rn(v); }

__global__ void fill(Element* data, unsigned long long count, unsigned long long seed) {
  const unsigned long long step = static_cast<unsigned long long>(gridDim.x) * blockDim.x;
  for (unsigned long long i = static_cast<unsigned long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step) {
    store(data + i, value(seed, i));
  }
}

inline long long offset(bool nhwc, long long n, long long c, long long h, long long w, long long channels,
                        long long height, long long width) {
  return nhwc ? ((n * height + h) * width + w) * channels + c : ((n * channels + c) * height + h) * width + w;
}

// One output in double, and the sum of the magnitudes that bounds the rounding of any summation order.
struct Expected {
  double y, magnitude;
};

inline Expected expected(long long n, long long k, long long p, long long q) {
  const long long group = k / (kK / kGroups);
  double sum = 0, magnitude = 0;
  for (long long c = 0; c < kFilterC; ++c) {
    for (long long r = 0; r < kR; ++r) {
      for (long long s = 0; s < kS; ++s) {
        const long long h = p * kStrideH - kPadTop + r * kDilationH, w = q * kStrideW - kPadLeft + s * kDilationW;
        if (h < 0 || h >= kH || w < 0 || w >= kW) continue;
        const long long at = offset(kInputNhwc, n, group * kFilterC + c, h, w, kC, kH, kW);
        const double product = static_cast<double>(value(kSeedX, at)) *
                               static_cast<double>(value(kSeedW, ((k * kFilterC + c) * kR + r) * kS + s));
        sum += product;
        magnitude += std::fabs(product);
      }
    }
  }
  if (kBias) {
    sum += static_cast<double>(value(kSeedBias, k));
    magnitude += std::fabs(static_cast<double>(value(kSeedBias, k)));
  }
  if (kResidual) {
    const double residual = static_cast<double>(value(kSeedResidual, offset(kOutputNhwc, n, k, p, q, kK, kP, kQ)));
    sum += residual;
    magnitude += std::fabs(residual);
  }
  return {activation(sum), magnitude};
}

// gamma(n) of Higham, Accuracy and Stability, chapter 3, for n fp32 additions and products; plus the rounding of the
// result, and 16 units of fp32 for the activation's own arithmetic, whose slope is at most kSteepest.
inline double bound(const Expected& e) {
  const double u = std::ldexp(1.0, -24), n = static_cast<double>(kFilterC * kR * kS + 3);
  const double gamma = n * u / (1 - n * u) + kOperandError;
  return kSteepest * gamma * e.magnitude + kOutputError * std::fabs(e.y) + 16 * u * (1 + std::fabs(e.y));
}

inline Element* tensor(long long count, unsigned long long seed) {
  Element* data = nullptr;
  HARNESS_CALL(cudaMalloc(&data, static_cast<std::size_t>(count) * sizeof(Element)));
  fill<<<4096, 256>>>(data, static_cast<unsigned long long>(count), seed);
  HARNESS_CALL(cudaGetLastError());
  return data;
}

inline int check(const Element* y) {
  constexpr long long kSamples = 4096;
  const long long outputs = kN * kK * kP * kQ;
  double worst = 0;
  for (long long i = 0; i < kSamples && i < outputs; ++i) {
    // Both ends, and positions spread evenly but not in step with any tile.
    long long index =
        outputs <= kSamples
            ? i
            : static_cast<long long>(static_cast<double>(outputs) * 0.6180339887498949 * static_cast<double>(i)) %
                  outputs;
    if (outputs > kSamples && i < 64) index = i % 2 == 0 ? i / 2 : outputs - 1 - i / 2;
    long long rest = index;
    const long long q = rest % kQ;
    rest /= kQ;
    const long long p = rest % kP;
    rest /= kP;
    const long long k = rest % kK, n = rest / kK;
    Element got;
    HARNESS_CALL(
        cudaMemcpy(&got, y + offset(kOutputNhwc, n, k, p, q, kK, kP, kQ), sizeof(Element), cudaMemcpyDeviceToHost));
    const Expected want = expected(n, k, p, q);
    const double ratio = std::fabs(to_double(got) - want.y) / bound(want);
    if (!(ratio <= 1)) {
      std::fprintf(stderr, "WRONG y[n=%lld,k=%lld,p=%lld,q=%lld] = %.9g, expected %.9g, bound %.3g\n", n, k, p, q,
                   to_double(got), want.y, bound(want));
      return 1;
    }
    if (ratio > worst) worst = ratio;
  }
  std::printf("checked %lld of %lld outputs: largest error is %.3f of the bound\n",
              outputs < kSamples ? outputs : kSamples, outputs, worst);
  return 0;
}

inline double median_ms(const Buffers& buffers) {
  constexpr int kLaunches = 21;
  cudaEvent_t begin, end;
  HARNESS_CALL(cudaEventCreate(&begin));
  HARNESS_CALL(cudaEventCreate(&end));
  float ms[kLaunches];
  for (float& one : ms) {
    HARNESS_CALL(cudaEventRecord(begin));
    launch(buffers, nullptr);
    HARNESS_CALL(cudaEventRecord(end));
    HARNESS_CALL(cudaEventSynchronize(end));
    HARNESS_CALL(cudaEventElapsedTime(&one, begin, end));
  }
  std::sort(ms, ms + kLaunches);
  return static_cast<double>(ms[kLaunches / 2]);
}

inline int run() {
  const long long outputs = kN * kK * kP * kQ;
  Buffers buffers{};
  buffers.x = tensor(kN * kC * kH * kW, kSeedX);
  buffers.w = tensor(kK * kFilterC * kR * kS, kSeedW);
  if (kBias) buffers.bias = tensor(kK, kSeedBias);
  if (kResidual) buffers.residual = tensor(outputs, kSeedResidual);
  Element* y = nullptr;
  HARNESS_CALL(cudaMalloc(&y, static_cast<std::size_t>(outputs) * sizeof(Element)));
  HARNESS_CALL(cudaMemset(y, 0xff, static_cast<std::size_t>(outputs) * sizeof(Element)));  // NaN in every type
  buffers.y = y;
  if (kWorkspaceBytes > 0) HARNESS_CALL(cudaMalloc(&buffers.workspace, kWorkspaceBytes));

  prepare();
  launch(buffers, nullptr);
  HARNESS_CALL(cudaDeviceSynchronize());
  const int failed = check(y);
  const double ms = median_ms(buffers);
  std::printf("%.4f ms (median of 21, L2 not flushed), %.2f TFLOP/s, %.1f GB/s\n", ms, kFlop / ms * 1e-9,
              kBytes / ms * 1e-6);
  return failed;
}

}  // namespace harness

int main() { return harness::run(); }
