// Resolves libcuda's exported names.
#include "runtime/cuda_calls.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "jitconv/error.h"

namespace jitconv::runtime {
namespace {

template <typename Function>
void resolve(void* library, const char* name, Function& function) {
  void* symbol = dlsym(library, name);
  if (symbol == nullptr) {
    throw CudaError(ErrorCode::no_driver, 0, name, fmt::format("libcuda.so.1 does not export {}", name));
  }
  function = reinterpret_cast<Function>(symbol);
}

}  // namespace

CudaCalls::CudaCalls() {
  // Never closed: the driver stays loaded for the life of the process anyway.
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw CudaError(ErrorCode::no_driver, 0, "dlopen", "libcuda.so.1 cannot be loaded");
  resolve(library, "cuGetErrorName", get_error_name);
  resolve(library, "cuDriverGetVersion", driver_get_version);
  resolve(library, "cuDeviceGetName", device_get_name);
  resolve(library, "cuDeviceGetAttribute", device_get_attribute);
  resolve(library, "cuMemGetInfo_v2", mem_get_info);
  resolve(library, "cuMemAlloc_v2", mem_alloc);
  resolve(library, "cuMemFree_v2", mem_free);
  resolve(library, "cuMemcpyHtoD_v2", memcpy_htod);
  resolve(library, "cuMemcpyDtoDAsync_v2", memcpy_dtod_async);
  resolve(library, "cuMemcpyDtoH_v2", memcpy_dtoh);
  resolve(library, "cuMemsetD8Async", memset_d8_async);
  resolve(library, "cuCtxSynchronize", ctx_synchronize);
  resolve(library, "cuEventCreate", event_create);
  resolve(library, "cuEventDestroy_v2", event_destroy);
  resolve(library, "cuEventRecord", event_record);
  resolve(library, "cuEventElapsedTime", event_elapsed_time);
}

void CudaCalls::check(int result, const char* call) const {
  if (result == 0) return;
  const char* name = nullptr;
  get_error_name(result, &name);
  throw CudaError(ErrorCode::cuda, result, call,
                  fmt::format("{} failed: {} ({})", call, name != nullptr ? name : "unknown error", result));
}

}  // namespace jitconv::runtime
