// libcuda, opened with dlopen at first use, behind the few calls jitconv makes. The only header with CUDA's types in it
// is cuda_abi.h, for driver.cpp: handles are opaque here. Every failure is a CudaError that names the call and the
// code.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "codegen/source.h"
#include "jitconv/target.h"
#include "runtime/image.h"

namespace jitconv::runtime {

/// A CUtensorMap: a kernel's parameter.
struct alignas(64) TensorMap {
  std::array<std::uint64_t, 16> words;
};

class Driver {
 public:
  /// Loads libcuda and calls cuInit once. Throws CudaError (no_driver, no_device). A failure is not remembered.
  static const Driver& get();

  /// The device of the calling thread's current context, or -1 if it has none.
  int current_device() const;
  /// Makes the primary context of device 0 current if the thread has no context; returns the context's device. The
  /// primary context is retained once and kept for the life of the process.
  int ensure_context() const;
  /// Asks the driver once per device.
  Target target_of(int device) const;

  /// Needs no context. May be called while another thread captures a stream.
  std::shared_ptr<LoadedImage> load(const std::string& image) const;
  /// `image` is one of load()'s.
  DeviceKernel kernel(const LoadedImage& image, const std::string& name) const;
  /// Allows `shared_bytes` of dynamic shared memory on `device`, which is the current context's, and has the driver
  /// load the code now (no lazy loading).
  DeviceKernelInfo prepare(DeviceKernel kernel, int device, std::uint32_t shared_bytes) const;
  bool is_capturing(void* stream) const;
  /// What TMA needs to know of the tensor at `address`. Takes no lock and no memory.
  void encode_tensor_map(const codegen::TensorMapShape& shape, void* address, TensorMap& map) const;
  /// `overlap`: the kernel waits by itself for what it needs of the kernel launched before it on the stream, and may
  /// start before that one has finished, if it lets it.
  void launch(DeviceKernel kernel, std::span<const std::uint32_t, 3> grid, std::uint32_t threads,
              std::uint32_t shared_bytes, void* stream, void** parameters, bool overlap = false) const;

  /// Whether a CudaError::result() says that the image itself is unusable, rather than the device, the memory or the
  /// context.
  static bool refuses_image(int result);

 private:
  Driver() = default;
};

}  // namespace jitconv::runtime
