// The calls of driver.h over libcuda's entry points. Opens the library once, keeps it open for ever (unloading a driver
// that has threads is not safe), and holds the only process-wide CUDA state there is: the retained primary context of
// device 0 and the targets of the devices seen so far.
#include "runtime/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <atomic>
#include <mutex>

#include "runtime/cuda_abi.h"
#include "runtime/driver_errors.h"
#include "runtime/fork_guard.h"
#include "runtime/log.h"

namespace jitconv::runtime {
namespace {

using namespace cuda;

constexpr int kRememberedDevices = 64;

Api libcuda;  // written once, before Driver::get() returns for the first time
std::array<std::atomic<const Target*>, kRememberedDevices> targets;

void check(Result result, const char* call) {
  if (result != kSuccess) [[unlikely]]
    throw_driver_error(libcuda, result, call);
}

template <typename Function>
void resolve(void* library, Function& slot, const char* name, bool required = true) {
  slot = reinterpret_cast<Function>(dlsym(library, name));
  if (slot == nullptr && required) {
    throw CudaError(ErrorCode::no_driver, 0, name,
                    fmt::format("libcuda.so.1 has no {}: jitconv needs the driver of CUDA 12.0 (525) or newer", name));
  }
}

/// The driver's version, which is not too old; 0 if only cuInit can say what is wrong.
int require_version(const Api& found) {
  int version = 0;
  const Result result = found.cuDriverGetVersion(&version);
  if (result == kStubLibrary) return 0;
  if (result != kSuccess) throw_driver_error(found, result, "cuDriverGetVersion");
  if (version >= kOldestDriver) return version;
  throw CudaError(ErrorCode::no_driver, 0, "cuDriverGetVersion",
                  fmt::format("the driver supports CUDA {}.{}; jitconv needs the driver of CUDA 12.0 (525) or newer",
                              version / 1000, version % 1000 / 10));
}

Api open_libcuda() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    throw CudaError(ErrorCode::no_driver, 0, "dlopen",
                    fmt::format("no NVIDIA driver: {}", reason == nullptr ? "libcuda.so.1 cannot be loaded" : reason));
  }
  Api found{};
  // These first: enough to say what is wrong with a library that lacks the rest.
  resolve(library, found.cuInit, "cuInit");
  resolve(library, found.cuDriverGetVersion, "cuDriverGetVersion");
  resolve(library, found.cuGetErrorName, "cuGetErrorName");
  resolve(library, found.cuGetErrorString, "cuGetErrorString");
  const int version = require_version(found);
  if (const Result result = found.cuInit(0); result != kSuccess) throw_driver_error(found, result, "cuInit");

  resolve(library, found.cuDeviceGetCount, "cuDeviceGetCount");
  resolve(library, found.cuDeviceGetAttribute, "cuDeviceGetAttribute");
  resolve(library, found.cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain");
  resolve(library, found.cuCtxSetCurrent, "cuCtxSetCurrent");
  resolve(library, found.cuCtxGetDevice, "cuCtxGetDevice");
  resolve(library, found.cuLibraryLoadData, "cuLibraryLoadData");
  resolve(library, found.cuLibraryUnload, "cuLibraryUnload");
  resolve(library, found.cuLibraryGetKernel, "cuLibraryGetKernel");
  resolve(library, found.cuKernelGetFunction, "cuKernelGetFunction");
  resolve(library, found.cuKernelGetAttribute, "cuKernelGetAttribute");
  resolve(library, found.cuKernelSetAttribute, "cuKernelSetAttribute");
  resolve(library, found.cuStreamIsCapturing, "cuStreamIsCapturing");
  resolve(library, found.cuThreadExchangeStreamCaptureMode, "cuThreadExchangeStreamCaptureMode");
  resolve(library, found.cuTensorMapEncodeTiled, "cuTensorMapEncodeTiled");
  resolve(library, found.cuTensorMapEncodeIm2col, "cuTensorMapEncodeIm2col");
  resolve(library, found.cuLaunchKernel, "cuLaunchKernel");
  resolve(library, found.cuFuncLoad, "cuFuncLoad", /*required=*/false);
  if (version >= kCapturesOverlap) resolve(library, found.cuLaunchKernelEx, "cuLaunchKernelEx", /*required=*/false);

  int devices = 0;
  Result result = found.cuDeviceGetCount(&devices);
  if (result == kSuccess && devices == 0) result = kNoDevice;
  if (result != kSuccess) throw_driver_error(found, result, "cuDeviceGetCount");
  return found;
}

int swizzle_of(int bytes) {
  switch (bytes) {
    case 32:
      return kSwizzle32Bytes;
    case 64:
      return kSwizzle64Bytes;
    case 128:
      return kSwizzle128Bytes;
    default:
      return kNoSwizzle;
  }
}

/// While a thread captures a stream in global mode, calls that may synchronise fail in every thread and end the
/// capture. Loading a module touches no stream, so the thread that does it asks to be exempt.
class ExemptFromCapture {
 public:
  ExemptFromCapture() : exchanged_(libcuda.cuThreadExchangeStreamCaptureMode(&mode_) == kSuccess) {}
  ~ExemptFromCapture() {
    if (exchanged_) libcuda.cuThreadExchangeStreamCaptureMode(&mode_);
  }
  ExemptFromCapture(const ExemptFromCapture&) = delete;
  ExemptFromCapture& operator=(const ExemptFromCapture&) = delete;

 private:
  int mode_ = kCaptureModeRelaxed;
  bool exchanged_;
};

Target query_target(int device) {
  const auto attribute = [device](DeviceAttribute which) {
    int value = 0;
    check(libcuda.cuDeviceGetAttribute(&value, which, device), "cuDeviceGetAttribute");
    return value;
  };
  Target target;
  target.major = attribute(kComputeCapabilityMajor);
  target.minor = attribute(kComputeCapabilityMinor);
  target.arch_specific = target.major >= 9;
  target.sm_count = attribute(kMultiprocessorCount);
  target.shared_bytes_per_block = attribute(kMaxSharedMemoryPerBlockOptin);
  target.shared_bytes_per_sm = attribute(kMaxSharedMemoryPerMultiprocessor);
  target.registers_per_sm = attribute(kMaxRegistersPerMultiprocessor);
  target.threads_per_sm = attribute(kMaxThreadsPerMultiprocessor);
  target.blocks_per_sm = attribute(kMaxBlocksPerMultiprocessor);
  target.l2_bytes = attribute(kL2CacheSize);
  return target;
}

/// Retained at most once; released by the driver when the process ends.
Handle primary_context_of_device_0() {
  static std::mutex mutex;
  static Handle context = nullptr;
  const std::lock_guard lock(mutex);
  if (context == nullptr) check(libcuda.cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
  return context;
}

class Library final : public LoadedImage {
 public:
  ~Library() override {
    if (handle == nullptr) return;
    const ExemptFromCapture exempt;
    const Result result = libcuda.cuLibraryUnload(handle);
    // At exit the driver may have gone first, and with it the library.
    if (result == kSuccess || result == kDeinitialized) return;
    try {
      log(LogLevel::debug, "cuLibraryUnload: " + result_name(libcuda, result));
    } catch (...) {  // out of memory while building the message
    }
  }
  Handle handle = nullptr;  // CUlibrary
};

}  // namespace

const Driver& Driver::get() {
  static const Driver driver;
  static std::atomic<bool> ready{false};
  static std::mutex mutex;
  refuse_after_fork();
  if (ready.load(std::memory_order_acquire)) [[likely]]
    return driver;
  forbid_use_after_fork();
  const std::lock_guard lock(mutex);
  if (!ready.load(std::memory_order_relaxed)) {
    libcuda = open_libcuda();
    ready.store(true, std::memory_order_release);
  }
  return driver;
}

int Driver::current_device() const {
  Device device = -1;
  const Result result = libcuda.cuCtxGetDevice(&device);
  if (result == kInvalidContext) return -1;
  check(result, "cuCtxGetDevice");
  return device;
}

int Driver::ensure_context() const {
  const int device = current_device();
  if (device >= 0) [[likely]]
    return device;
  check(libcuda.cuCtxSetCurrent(primary_context_of_device_0()), "cuCtxSetCurrent");
  return 0;
}

Target Driver::target_of(int device) const {
  if (device < 0 || device >= kRememberedDevices) return query_target(device);
  std::atomic<const Target*>& slot = targets[static_cast<std::size_t>(device)];
  if (const Target* known = slot.load(std::memory_order_acquire)) [[likely]]
    return *known;
  auto queried = std::make_unique<const Target>(query_target(device));
  const Target target = *queried;
  const Target* expected = nullptr;
  if (slot.compare_exchange_strong(expected, queried.get(), std::memory_order_acq_rel)) queried.release();
  return target;
}

std::shared_ptr<LoadedImage> Driver::load(const std::string& image) const {
  const ExemptFromCapture exempt;
  // Allocated first, so that nothing can fail between the driver's call and the owner of its handle.
  auto loaded = std::make_shared<Library>();
  check(libcuda.cuLibraryLoadData(&loaded->handle, image.data(), nullptr, nullptr, 0, nullptr, nullptr, 0),
        "cuLibraryLoadData");
  return loaded;
}

DeviceKernel Driver::kernel(const LoadedImage& image, const std::string& name) const {
  DeviceKernel kernel;
  const Result result =
      libcuda.cuLibraryGetKernel(&kernel.handle, static_cast<const Library&>(image).handle, name.c_str());
  if (result != kSuccess) throw_driver_error(libcuda, result, "cuLibraryGetKernel", name);
  return kernel;
}

DeviceKernelInfo Driver::prepare(DeviceKernel kernel, int device, std::uint32_t shared_bytes) const {
  const ExemptFromCapture exempt;
  if (shared_bytes > 0) {
    const Result result =
        libcuda.cuKernelSetAttribute(kMaxDynamicSharedSizeBytes, static_cast<int>(shared_bytes), kernel.handle, device);
    if (result != kSuccess) {
      throw_driver_error(libcuda, result, "cuKernelSetAttribute",
                         fmt::format("asking for {} bytes of dynamic shared memory", shared_bytes));
    }
  }
  Handle function = nullptr;
  check(libcuda.cuKernelGetFunction(&function, kernel.handle), "cuKernelGetFunction");
  if (libcuda.cuFuncLoad != nullptr) check(libcuda.cuFuncLoad(function), "cuFuncLoad");
  const auto attribute = [&](FunctionAttribute which) {
    int value = 0;
    check(libcuda.cuKernelGetAttribute(&value, which, kernel.handle, device), "cuKernelGetAttribute");
    return value;
  };
  return {attribute(kNumRegisters), attribute(kLocalSizeBytes), attribute(kSharedSizeBytes)};
}

bool Driver::is_capturing(void* stream) const {
  int status = 0;
  check(libcuda.cuStreamIsCapturing(stream, &status), "cuStreamIsCapturing");
  return status != 0;
}

void Driver::encode_tensor_map(const codegen::TensorMapShape& shape, void* address, TensorMap& map) const {
  constexpr std::size_t kMost = codegen::TensorMapShape::kMostRank;
  std::array<std::uint64_t, kMost> extents{}, strides{};
  std::array<std::uint32_t, kMost> box{}, element_strides{};
  for (std::size_t i = 0; i < static_cast<std::size_t>(shape.rank); ++i) {
    extents[i] = static_cast<std::uint64_t>(shape.extents[i]);
    strides[i] = static_cast<std::uint64_t>(shape.strides[i] * shape.element_bytes);
    box[i] = static_cast<std::uint32_t>(shape.box[i]);
    element_strides[i] = 1;
  }
  const int type = shape.element_bytes == 2 ? kUint16 : shape.rounds_to_tf32 ? kTfloat32 : kFloat32;
  const int swizzle = swizzle_of(shape.swizzle_bytes);
  const auto rank = static_cast<std::uint32_t>(shape.rank);
  if (!shape.im2col) {
    check(
        libcuda.cuTensorMapEncodeTiled(&map, type, rank, address, extents.data(), strides.data() + 1, box.data(),
                                       element_strides.data(), /*interleave=*/0, swizzle, kPromote128Bytes, /*fill=*/0),
        "cuTensorMapEncodeTiled");
    return;
  }
  for (std::size_t i = 0; i < shape.im2col->stride.size(); ++i)
    element_strides[i + 1] = static_cast<std::uint32_t>(shape.im2col->stride[i]);
  // If pixels are larger, the next step's channels come to L2 along with this step's (86_pw, NHWC: 4 % faster).
  check(
      libcuda.cuTensorMapEncodeIm2col(&map, type, rank, address, extents.data(), strides.data() + 1,
                                      shape.im2col->lower.data(), shape.im2col->upper.data(), box[0], box[1],
                                      element_strides.data(), /*interleave=*/0, swizzle, kPromote256Bytes, /*fill=*/0),
      "cuTensorMapEncodeIm2col");
}

void Driver::launch(DeviceKernel kernel, std::span<const std::uint32_t, 3> grid, std::uint32_t threads,
                    std::uint32_t shared_bytes, void* stream, void** parameters, bool overlap) const {
  // A driver that cannot overlap runs the kernels one after the other, and waiting returns at once.
  if (overlap && libcuda.cuLaunchKernelEx != nullptr) {
    // The stream's order before this launch is up to the kernel: see KernelState::launch for why it may be.
    LaunchAttribute serialization{.id = kProgrammaticStreamSerialization, .value = {1}};
    const LaunchConfig config{{grid[0], grid[1], grid[2]}, {threads, 1, 1}, shared_bytes, stream, &serialization, 1};
    check(libcuda.cuLaunchKernelEx(&config, kernel.handle, parameters, nullptr), "cuLaunchKernelEx");
    return;
  }
  check(libcuda.cuLaunchKernel(kernel.handle, grid[0], grid[1], grid[2], threads, 1, 1, shared_bytes, stream,
                               parameters, nullptr),
        "cuLaunchKernel");
}

bool Driver::refuses_image(int result) {
  return result == kInvalidImage || result == kNoBinaryForGpu || result == kInvalidPtx ||
         result == kUnsupportedPtxVersion || result == kInvalidSource || result == kNotFound;
}

}  // namespace jitconv::runtime
