// The part of the CUDA Driver API's binary interface that driver.cpp uses, restated so that building needs no CUDA
// toolkit: entry points under their versioned names, handles as void*, enumerators as numbers. From the reference
// manual of CUDA 12.0, which has all of them; what came later is marked optional.
#pragma once

#include <cstddef>
#include <cstdint>

namespace jitconv::runtime::cuda {

using Result = int;  // CUresult
using Device = int;  // CUdevice
using Handle = void*;

inline constexpr int kOldestDriver = 12000;     // cuLibraryLoadData and its kin
inline constexpr int kCapturesOverlap = 12030;  // graphs whose edges say that a kernel may start early

inline constexpr Result kSuccess = 0, kDeinitialized = 4, kStubLibrary = 34, kDeviceUnavailable = 46, kNoDevice = 100,
                        kInvalidDevice = 101, kInvalidImage = 200, kInvalidContext = 201, kNoBinaryForGpu = 209,
                        kInvalidPtx = 218, kUnsupportedPtxVersion = 222, kInvalidSource = 300, kInvalidHandle = 400,
                        kNotFound = 500, kIllegalAddress = 700, kLaunchTimeout = 702, kAssert = 710,
                        kHardwareStackError = 714, kLaunchFailed = 719, kSystemNotReady = 802,
                        kSystemDriverMismatch = 803, kCompatNotSupported = 804, kCaptureUnsupported = 900;

enum DeviceAttribute : int {
  kMultiprocessorCount = 16,
  kL2CacheSize = 38,
  kMaxThreadsPerMultiprocessor = 39,
  kComputeCapabilityMajor = 75,
  kComputeCapabilityMinor = 76,
  kMaxSharedMemoryPerMultiprocessor = 81,
  kMaxRegistersPerMultiprocessor = 82,
  kMaxSharedMemoryPerBlockOptin = 97,
  kMaxBlocksPerMultiprocessor = 106,
};

enum FunctionAttribute : int {
  kSharedSizeBytes = 1,
  kLocalSizeBytes = 3,
  kNumRegisters = 4,
  kMaxDynamicSharedSizeBytes = 8,
};

inline constexpr int kCaptureModeRelaxed = 2;  // CUstreamCaptureMode

inline constexpr int kProgrammaticStreamSerialization = 6;  // CUlaunchAttributeID

struct LaunchAttribute {  // CUlaunchAttribute
  int id;
  alignas(8) int value[16];  ///< a union of 64 bytes; the first says whether programmatic serialization is allowed
};
static_assert(sizeof(LaunchAttribute) == 72 && offsetof(LaunchAttribute, value) == 8);

struct LaunchConfig {  // CUlaunchConfig
  unsigned grid[3], block[3];
  unsigned shared_bytes;
  Handle stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};
static_assert(offsetof(LaunchConfig, block) == 12 && offsetof(LaunchConfig, shared_bytes) == 24 &&
              offsetof(LaunchConfig, stream) == 32 && offsetof(LaunchConfig, attributes) == 40 &&
              offsetof(LaunchConfig, attribute_count) == 48 && sizeof(LaunchConfig) == 56);

// Enumerators for tensor maps: CUtensorMapDataType, CUtensorMapSwizzle, CUtensorMapL2promotion. The other enumerations
// are left at zero: no interleaving, zeros outside.
inline constexpr int kUint16 = 1, kFloat32 = 7, kTfloat32 = 11;
inline constexpr int kNoSwizzle = 0, kSwizzle32Bytes = 1, kSwizzle64Bytes = 2, kSwizzle128Bytes = 3;
inline constexpr int kPromote128Bytes = 2, kPromote256Bytes = 3;

/// Entry points, resolved by driver.cpp. Each member is spelled as the symbol it holds.
struct Api {
  Result (*cuInit)(unsigned flags);
  Result (*cuDriverGetVersion)(int* version);
  Result (*cuGetErrorName)(Result, const char** text);
  Result (*cuGetErrorString)(Result, const char** text);
  Result (*cuDeviceGetCount)(int* count);
  Result (*cuDeviceGetAttribute)(int* value, int attribute, Device);
  Result (*cuDevicePrimaryCtxRetain)(Handle* context, Device);
  Result (*cuCtxSetCurrent)(Handle context);
  Result (*cuCtxGetDevice)(Device*);
  Result (*cuLibraryLoadData)(Handle* library, const void* code, int* jit_options, void** jit_values,
                              unsigned jit_count, int* library_options, void** library_values, unsigned library_count);
  Result (*cuLibraryUnload)(Handle library);
  Result (*cuLibraryGetKernel)(Handle* kernel, Handle library, const char* name);
  Result (*cuKernelGetFunction)(Handle* function, Handle kernel);
  Result (*cuKernelGetAttribute)(int* value, int attribute, Handle kernel, Device);
  Result (*cuKernelSetAttribute)(int attribute, int value, Handle kernel, Device);
  Result (*cuStreamIsCapturing)(Handle stream, int* status);
  Result (*cuThreadExchangeStreamCaptureMode)(int* mode);
  /// Calls no device, but wants a context. `strides`: bytes, of all axes but the first, whose elements are neighbours.
  Result (*cuTensorMapEncodeTiled)(void* map, int data_type, std::uint32_t rank, void* address,
                                   const std::uint64_t* extents, const std::uint64_t* strides, const std::uint32_t* box,
                                   const std::uint32_t* element_strides, int interleave, int swizzle, int l2_promotion,
                                   int fill);
  /// The same, of an im2col map of pixels. `lower` and `upper`: of all axes but the first and the last, in their order,
  /// which is not the one the manual names.
  Result (*cuTensorMapEncodeIm2col)(void* map, int data_type, std::uint32_t rank, void* address,
                                    const std::uint64_t* extents, const std::uint64_t* strides, const int* lower,
                                    const int* upper, std::uint32_t channels, std::uint32_t pixels,
                                    const std::uint32_t* element_strides, int interleave, int swizzle, int l2_promotion,
                                    int fill);
  Result (*cuLaunchKernel)(Handle function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                           unsigned block_y, unsigned block_z, unsigned shared_bytes, Handle stream, void** parameters,
                           void** extra);
  Result (*cuLaunchKernelEx)(const LaunchConfig*, Handle function, void** parameters,
                             void** extra);  ///< optional, from kCapturesOverlap on
  Result (*cuFuncLoad)(Handle function);     ///< optional: 12.4
};

}  // namespace jitconv::runtime::cuda
