// What each driver error means for a user of jitconv. See driver_errors.h.
#include "runtime/driver_errors.h"

#include <fmt/format.h>

namespace jitconv::runtime {
namespace {

using namespace cuda;

ErrorCode code_of(Result result) {
  switch (result) {
    case kStubLibrary:
    case kSystemNotReady:
    case kSystemDriverMismatch:
    case kCompatNotSupported:
      return ErrorCode::no_driver;
    case kNoDevice:
    case kInvalidDevice:
    case kDeviceUnavailable:
      return ErrorCode::no_device;
    default:
      return ErrorCode::cuda;
  }
}

bool poisons_context(Result result) {
  return result == kIllegalAddress || result == kLaunchTimeout || result == kAssert ||
         (result >= kHardwareStackError && result <= kLaunchFailed);
}

const char* advice(Result result) {
  if (poisons_context(result)) {
    return "; a kernel that ran earlier failed, and this context is unusable from now on: the process has to restart";
  }
  switch (result) {
    case kStubLibrary:
      return "; the libcuda.so.1 that was found is the CUDA toolkit's stub for linking, not a driver: remove the "
             "toolkit's stubs folder from LD_LIBRARY_PATH";
    case kSystemNotReady:
      return "; the system is not ready yet: on NVSwitch machines, is the fabric manager running?";
    case kSystemDriverMismatch:
    case kCompatNotSupported:
      return "; libcuda.so.1 does not fit the kernel module: a reboot after a driver update, or removing a "
             "compatibility package from LD_LIBRARY_PATH, helps";
    case kNoDevice:
      return "; there is no GPU, or CUDA_VISIBLE_DEVICES hides it";
    case kNoBinaryForGpu:
      return "; the image was compiled for another architecture";
    case kInvalidContext:
      return "; the calling thread has no usable context";
    case kInvalidHandle:
      return "; does the stream belong to the current context?";
    default:
      return "";
  }
}

}  // namespace

std::string result_name(const Api& api, Result result) {
  const char* name = nullptr;
  if (api.cuGetErrorName(result, &name) != kSuccess || name == nullptr) name = "unknown error";
  return fmt::format("{} ({})", name, result);
}

void throw_driver_error(const Api& api, Result result, const char* call, const std::string& context) {
  const char* text = nullptr;
  if (api.cuGetErrorString(result, &text) != kSuccess) text = nullptr;
  throw CudaError(
      code_of(result), result, call,
      fmt::format("{}{} failed: {}{}{}{}", context.empty() ? "" : context + ": ", call, result_name(api, result),
                  text == nullptr ? "" : ", ", text == nullptr ? "" : text, advice(result)));
}

}  // namespace jitconv::runtime
