// libcuda, opened with dlopen at first use, behind the few calls jitconv makes. The only header with CUDA's types in it
// is driver.cpp's own: handles are opaque here. Every failure is a CudaError that names the call and the code.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "jitconv/target.h"

namespace jitconv::runtime {

/// A loaded image. Unloads in the destructor, which never throws.
class LoadedImage {
 public:
  ~LoadedImage();
  LoadedImage(const LoadedImage&) = delete;
  LoadedImage& operator=(const LoadedImage&) = delete;

 private:
  friend class Driver;
  LoadedImage() = default;
  void* library_ = nullptr;  // CUlibrary
};

/// A kernel of a loaded image; valid as long as the image.
struct DeviceKernel {
  void* handle = nullptr;  // CUkernel, usable as CUfunction in every context
};

struct DeviceKernelInfo {
  int registers = 0;
  std::int64_t local_bytes = 0;
  std::int64_t static_shared_bytes = 0;
};

class Driver {
 public:
  /// Loads libcuda and calls cuInit once. Throws CudaError (no_driver, no_device). A failure is not remembered.
  static const Driver& get();

  /// Makes the primary context of device 0 current if the thread has no context; returns the context's device.
  int ensure_context() const;
  Target target_of(int device) const;

  std::shared_ptr<LoadedImage> load(const std::string& image) const;
  DeviceKernel kernel(const LoadedImage& image, const std::string& name) const;
  /// Allows `shared_bytes` of dynamic shared memory on `device` and has the driver load the code now (no lazy loading).
  DeviceKernelInfo prepare(DeviceKernel kernel, int device, std::uint32_t shared_bytes) const;
  void launch(DeviceKernel kernel, std::span<const std::uint32_t, 3> grid, std::uint32_t threads,
              std::uint32_t shared_bytes, void* stream, void** arguments) const;

 private:
  Driver();
};

}  // namespace jitconv::runtime
