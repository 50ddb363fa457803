// The entry points of the fake driver: see fake_driver.h. They carry the ABI of CUDA 12.0, restated from its manual and
// not from the runtime's own declarations, so that a mistake there does not hide here.
#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "fake_driver_state.h"

namespace {

using namespace fake_driver;
using CUresult = int;

thread_local int capture_mode = 0;
char contexts[64];  // addresses stand for primary contexts

Kernel* live(void* handle, const char* call) {
  for (Library* library : state().libraries) {
    const auto found = std::find(library->kernels.begin(), library->kernels.end(), handle);
    if (found != library->kernels.end()) return *found;
  }
  violate(std::string(call) + ": dead kernel handle");
  return nullptr;
}

}  // namespace

extern "C" {

CUresult cuInit(unsigned flags) {
  const Entry entry("cuInit");
  return entry.result != 0 ? entry.result : flags == 0 ? 0 : 1;
}

CUresult cuDriverGetVersion(int* version) {
  const Entry entry("cuDriverGetVersion");
  *version = state().version;
  return entry.result;
}

CUresult cuGetErrorName(CUresult error, const char** text) {
  static const std::map<int, const char*> names = {
      {1, "CUDA_ERROR_INVALID_VALUE"},    {2, "CUDA_ERROR_OUT_OF_MEMORY"},   {34, "CUDA_ERROR_STUB_LIBRARY"},
      {100, "CUDA_ERROR_NO_DEVICE"},      {200, "CUDA_ERROR_INVALID_IMAGE"}, {400, "CUDA_ERROR_INVALID_HANDLE"},
      {700, "CUDA_ERROR_ILLEGAL_ADDRESS"}};
  const auto found = names.find(error);
  *text = found == names.end() ? nullptr : found->second;
  return found == names.end() ? 1 : 0;
}

CUresult cuGetErrorString(CUresult, const char** text) {
  *text = "as the test asked";
  return 0;
}

CUresult cuDeviceGetCount(int* count) {
  const Entry entry("cuDeviceGetCount");
  *count = state().device_count;
  return entry.result;
}

CUresult cuDeviceGetAttribute(int* value, int attribute, int device) {
  const Entry entry("cuDeviceGetAttribute");
  if (entry.result != 0) return entry.result;
  if (device < 0 || device >= state().device_count) return 101;
  // An H100 PCIe in everything but the capability: unlike the library's own table for sm_90a.
  const std::map<int, int> values = {{16, 114},           {38, 52428800},      {39, 2048},
                                     {75, state().major}, {76, state().minor}, {81, 233472},
                                     {82, 65536},         {97, 232448},        {106, 32}};
  const auto found = values.find(attribute);
  if (found == values.end()) return 1;
  *value = found->second;
  return 0;
}

CUresult cuDevicePrimaryCtxRetain(void** context, int device) {
  const Entry entry("cuDevicePrimaryCtxRetain");
  if (entry.result != 0) return entry.result;
  ++state().retained;
  *context = &contexts[device];
  return 0;
}

CUresult cuCtxSetCurrent(void* context) {
  const Entry entry("cuCtxSetCurrent");
  if (entry.result != 0) return entry.result;
  current_device = context == nullptr ? -1 : static_cast<int>(static_cast<char*>(context) - contexts);
  return 0;
}

CUresult cuCtxGetDevice(int* device) {
  if (fast.load(std::memory_order_relaxed) && current_device >= 0) {
    *device = current_device;
    return 0;
  }
  const Entry entry("cuCtxGetDevice");
  if (entry.result != 0) return entry.result;
  if (current_device < 0) return 201;
  *device = current_device;
  return 0;
}

#ifndef FAKE_DRIVER_BEFORE_12_0
CUresult cuLibraryLoadData(void** library, const void* code, int*, void**, unsigned jit_count, int*, void**,
                           unsigned library_count) {
  const Entry entry("cuLibraryLoadData");
  if (entry.result != 0) return entry.result;
  if (code == nullptr || jit_count != 0 || library_count != 0) return 1;
  Library* loaded = new Library;
  state().libraries.insert(loaded);
  *library = loaded;
  return 0;
}

CUresult cuLibraryUnload(void* library) {
  const Entry entry("cuLibraryUnload");
  if (entry.result != 0) return entry.result;
  Library* loaded = static_cast<Library*>(library);
  if (state().libraries.erase(loaded) == 0) {
    violate("cuLibraryUnload: dead library handle");
    return 400;
  }
  for (Kernel* kernel : loaded->kernels) delete kernel;
  delete loaded;
  return 0;
}

CUresult cuLibraryGetKernel(void** kernel, void* library, const char* name) {
  const Entry entry("cuLibraryGetKernel");
  if (entry.result != 0) return entry.result;
  Library* loaded = static_cast<Library*>(library);
  if (state().libraries.count(loaded) == 0) return 400;
  loaded->kernels.push_back(new Kernel{name, loaded, {}});
  *kernel = loaded->kernels.back();
  return 0;
}

CUresult cuKernelGetFunction(void** function, void* kernel) {
  const Entry entry("cuKernelGetFunction");
  if (entry.result != 0) return entry.result;
  if (current_device < 0) return 201;
  if (live(kernel, "cuKernelGetFunction") == nullptr) return 400;
  *function = kernel;
  return 0;
}

CUresult cuKernelGetAttribute(int* value, int attribute, void* kernel, int) {
  const Entry entry("cuKernelGetAttribute");
  if (entry.result != 0) return entry.result;
  if (live(kernel, "cuKernelGetAttribute") == nullptr) return 400;
  const std::map<int, int> values = {{1, 1024}, {3, 16}, {4, 77}};
  const auto found = values.find(attribute);
  if (found == values.end()) return 1;
  *value = found->second;
  return 0;
}

CUresult cuKernelSetAttribute(int attribute, int value, void* handle, int device) {
  const Entry entry("cuKernelSetAttribute");
  if (entry.result != 0) return entry.result;
  Kernel* kernel = live(handle, "cuKernelSetAttribute");
  if (kernel == nullptr) return 400;
  if (attribute != 8 || value < 0 || value > 232448) return 1;
  kernel->dynamic_shared[device] = value;
  return 0;
}

CUresult cuTensorMapEncodeTiled(void* map, int data_type, std::uint32_t rank, void* address,
                                const std::uint64_t* extents, const std::uint64_t* strides, const std::uint32_t* box,
                                const std::uint32_t* element_strides, int interleave, int swizzle, int l2_promotion,
                                int fill) {
  if (fast.load(std::memory_order_relaxed)) return 0;
  const Entry entry("cuTensorMapEncodeTiled");
  if (entry.result != 0) return entry.result;
  if (rank == 0 || rank > 5) return 1;
  return state().keep(map, {data_type,
                            interleave,
                            swizzle,
                            l2_promotion,
                            fill,
                            address,
                            {extents, extents + rank},
                            {strides, strides + rank - 1},
                            {box, box + rank},
                            {element_strides, element_strides + rank},
                            {},
                            {}});
}

CUresult cuTensorMapEncodeIm2col(void* map, int data_type, std::uint32_t rank, void* address,
                                 const std::uint64_t* extents, const std::uint64_t* strides, const int* lower,
                                 const int* upper, std::uint32_t channels, std::uint32_t pixels,
                                 const std::uint32_t* element_strides, int interleave, int swizzle, int l2_promotion,
                                 int fill) {
  if (fast.load(std::memory_order_relaxed)) return 0;
  const Entry entry("cuTensorMapEncodeIm2col");
  if (entry.result != 0) return entry.result;
  if (rank < 3 || rank > 5) return 1;
  return state().keep(map, {data_type,
                            interleave,
                            swizzle,
                            l2_promotion,
                            fill,
                            address,
                            {extents, extents + rank},
                            {strides, strides + rank - 1},
                            {channels, pixels},
                            {element_strides, element_strides + rank},
                            {lower, lower + rank - 2},
                            {upper, upper + rank - 2}});
}

CUresult cuFuncLoad(void* function) {
  const Entry entry("cuFuncLoad");
  if (entry.result != 0) return entry.result;
  return live(function, "cuFuncLoad") == nullptr ? 400 : 0;
}
#endif

CUresult cuStreamIsCapturing(void*, int* status) {
  const Entry entry("cuStreamIsCapturing");
  *status = state().capturing ? 1 : 0;
  return entry.result;
}

CUresult cuThreadExchangeStreamCaptureMode(int* mode) {
  const Entry entry("cuThreadExchangeStreamCaptureMode", /*counted=*/false);
  if (entry.result != 0) return entry.result;
  if (*mode < 0 || *mode > 2) return 1;
  std::swap(*mode, capture_mode);
  return 0;
}

CUresult cuLaunchKernel(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                        unsigned block_y, unsigned block_z, unsigned shared_bytes, void* stream, void** parameters,
                        void** extra) {
  if (fast.load(std::memory_order_relaxed)) return 0;
  const Entry entry("cuLaunchKernel");
  if (entry.result != 0) return entry.result;
  Kernel* kernel = live(function, "cuLaunchKernel");
  if (kernel == nullptr || current_device < 0) return 400;
  if (capture_mode != 0) violate("cuLaunchKernel: capture mode was not restored");
  if (extra != nullptr || block_y != 1 || block_z != 1 || block_x == 0 || block_x > 1024 || grid_x == 0) return 1;
  const int allowed = std::max(48 * 1024, kernel->dynamic_shared[current_device]);
  if (static_cast<int>(shared_bytes) > allowed) violate("cuLaunchKernel: more shared memory than was asked for");
  Launch launch{kernel->name, {grid_x, grid_y, grid_z}, block_x, shared_bytes, stream, false, {}, {}};
  for (std::size_t i = 0; i < state().arguments; ++i) {
    const auto map = state().maps.find(parameters[i]);
    const bool is_map = map != state().maps.end();
    launch.maps.push_back(is_map ? map->second : TensorMap{});
    launch.arguments.push_back(is_map ? map->second.address : *static_cast<void**>(parameters[i]));
  }
  state().maps.clear();
  state().launches.push_back(launch);
  return 0;
}

struct CUlaunchAttribute {
  int id;
  char pad[4];
  union {
    char bytes[64];
    int programmaticStreamSerializationAllowed;
  } value;
};
struct CUlaunchConfig {
  unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
  void* hStream;
  CUlaunchAttribute* attrs;
  unsigned numAttrs;
};

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, void* function, void** parameters, void** extra) {
  {
    const Entry entry("cuLaunchKernelEx");
    if (entry.result != 0) return entry.result;
    if (config->numAttrs != 1 || config->attrs->id != 6) return 1;
  }
  const CUresult result =
      cuLaunchKernel(function, config->gridDimX, config->gridDimY, config->gridDimZ, config->blockDimX,
                     config->blockDimY, config->blockDimZ, config->sharedMemBytes, config->hStream, parameters, extra);
  if (result != 0 || fast.load(std::memory_order_relaxed)) return result;
  const std::lock_guard lock(state().mutex);
  if (state().recording) state().calls.pop_back();
  state().launches.back().may_overlap = config->attrs->value.programmaticStreamSerializationAllowed != 0;
  return 0;
}

}  // extern "C"
