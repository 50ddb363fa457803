// Where jitconv-run executes kernels: memory, copies, data made in place, launches and timing. An interface, so that a
// device other than a GPU can stand in; the compiler and the planner know nothing of it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "jitconv/kernel.h"
#include "tools/check/data.h"

namespace jitconv::tools {

struct DeviceProperties {
  std::string name;
  std::string driver;  ///< "CUDA driver 13.0"
  Target target;
  double clock_hz = 0;            ///< highest clock of a multiprocessor
  double memory_bytes_per_s = 0;  ///< memory clock times bus width
};

class Device;

/// Memory of a device, released with the buffer. The device must outlive it.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Device& device, std::int64_t bytes);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  void* data() const { return data_; }
  std::int64_t bytes() const { return bytes_; }
  void* at(std::int64_t offset) const { return static_cast<char*>(data_) + offset; }

 private:
  Device* device_ = nullptr;
  void* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

/// Every failure is a CudaError (or whatever fits another device); release() never throws.
class Device {
 public:
  virtual ~Device() = default;
  virtual const DeviceProperties& properties() const = 0;
  virtual std::int64_t free_bytes() const = 0;

  virtual void* allocate(std::int64_t bytes) = 0;
  virtual void release(void* data) noexcept = 0;
  virtual void upload(void* to, const void* from, std::int64_t bytes) = 0;
  virtual void download(void* to, const void* from, std::int64_t bytes) = 0;
  virtual void set_bytes(void* to, std::uint8_t value, std::int64_t bytes) = 0;

  /// Writes elements 0 .. count-1 of `fill`: the values check::Fill gives on the host.
  virtual void generate(void* to, std::int64_t count, const check::Fill& fill) = 0;
  /// out[i] = the bits of from[indices[i]], widened to 32.
  virtual void gather(const void* from, DataType type, std::span<const std::int64_t> indices,
                      std::span<std::uint32_t> out) = 0;
  /// How many of `count` elements are NaN.
  virtual std::int64_t count_nan(const void* from, DataType type, std::int64_t count) = 0;
  /// How many of `count` bytes differ from `value`.
  virtual std::int64_t count_other_bytes(const void* from, std::uint8_t value, std::int64_t count) = 0;

  /// Loads the kernel so that the first launch is as cheap as any.
  virtual void prepare(const Kernel& kernel) = 0;
  virtual void launch(const Kernel& kernel, const LaunchArgs& args) = 0;
  virtual void synchronize() = 0;
  /// Milliseconds of each of `repeat` runs of `work`, in order. `before` is enqueued before each and not timed.
  virtual std::vector<double> time_ms(const std::function<void()>& before, const std::function<void()>& work,
                                      int repeat) = 0;
};

/// Device 0 through libcuda. Throws CudaError (no_driver, no_device).
std::unique_ptr<Device> open_cuda_device();

}  // namespace jitconv::tools
