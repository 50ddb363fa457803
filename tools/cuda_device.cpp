// The Device that is a GPU: memory and events from CudaCalls, loading and launching from runtime::Driver.
#include "tools/cuda_device.h"

#include <fmt/format.h>

#include <array>
#include <map>
#include <type_traits>

#include "runtime/compile.h"
#include "runtime/cuda_calls.h"
#include "runtime/driver.h"
#include "runtime/nvrtc.h"
#include "tools/device.h"

namespace jitconv::tools {
namespace {

using runtime::CudaCalls, runtime::CudaEvent;

// Values of CUdevice_attribute.
constexpr int kClockRateKhz = 13, kMemoryClockRateKhz = 36, kMemoryBusWidthBits = 37;

CudaCalls::DevicePointer device_pointer(const void* data) { return reinterpret_cast<CudaCalls::DevicePointer>(data); }

class CudaDevice final : public Device {
 public:
  CudaDevice() : driver_(runtime::Driver::get()), ordinal_(driver_.ensure_context()) {
    properties_.target = driver_.target_of(ordinal_);
    std::array<char, 256> name{};
    calls_.check(calls_.device_get_name(name.data(), static_cast<int>(name.size()) - 1, ordinal_), "cuDeviceGetName");
    properties_.name = name.data();
    int version = 0;
    calls_.check(calls_.driver_get_version(&version), "cuDriverGetVersion");
    properties_.driver = fmt::format("CUDA driver {}.{}", version / 1000, version % 1000 / 10);
    properties_.clock_hz = attribute(kClockRateKhz) * 1e3;
    // Two transfers per clock; the width is in bits.
    properties_.memory_bytes_per_s = 2.0 * attribute(kMemoryClockRateKhz) * 1e3 * attribute(kMemoryBusWidthBits) / 8;
  }

  const DeviceProperties& properties() const override { return properties_; }

  std::int64_t free_bytes() const override {
    std::size_t free = 0, total = 0;
    calls_.check(calls_.mem_get_info(&free, &total), "cuMemGetInfo");
    return static_cast<std::int64_t>(free);
  }

  void* allocate(std::int64_t bytes) override {
    CudaCalls::DevicePointer data = 0;
    calls_.check(calls_.mem_alloc(&data, static_cast<std::size_t>(bytes)),
                 fmt::format("cuMemAlloc of {} bytes", bytes).c_str());
    return reinterpret_cast<void*>(data);
  }

  void release(void* data) noexcept override { calls_.mem_free(device_pointer(data)); }

  void upload(void* to, const void* from, std::int64_t bytes) override {
    calls_.check(calls_.memcpy_htod(device_pointer(to), from, static_cast<std::size_t>(bytes)), "cuMemcpyHtoD");
  }

  void download(void* to, const void* from, std::int64_t bytes) override {
    calls_.check(calls_.memcpy_dtoh(to, device_pointer(from), static_cast<std::size_t>(bytes)), "cuMemcpyDtoH");
  }

  void set_bytes(void* to, std::uint8_t value, std::int64_t bytes) override {
    if (bytes == 0) return;
    calls_.check(calls_.memset_d8_async(device_pointer(to), value, static_cast<std::size_t>(bytes), nullptr),
                 "cuMemsetD8Async");
  }

  void generate(void* to, std::int64_t count, const check::Fill& fill) override {
    const char* name = fill.type == DataType::f32 ? "fill_f32" : fill.type == DataType::f16 ? "fill_f16" : "fill_bf16";
    call(name, count, to, count, fill.seed, static_cast<int>(fill.kind), fill.range, fill.keep, fill.scale,
         fill.offset);
  }

  void gather(const void* from, DataType type, std::span<const std::int64_t> indices,
              std::span<std::uint32_t> out) override {
    const std::int64_t count = static_cast<std::int64_t>(indices.size());
    if (count == 0) return;
    const Buffer device_indices(*this, count * 8), device_out(*this, count * 4);
    upload(device_indices.data(), indices.data(), count * 8);
    call(type == DataType::f32 ? "gather_32" : "gather_16", count, from, device_indices.data(), device_out.data(),
         count);
    download(out.data(), device_out.data(), count * 4);
  }

  std::int64_t count_nan(const void* from, DataType type, std::int64_t count) override {
    const std::uint32_t infinity = type == DataType::f32 ? 0x7f800000u : type == DataType::f16 ? 0x7c00u : 0x7f80u;
    return counted([&](void* result) {
      call(type == DataType::f32 ? "count_nan_32" : "count_nan_16", count, from, count, infinity, result);
    });
  }

  std::int64_t count_other_bytes(const void* from, std::uint8_t value, std::int64_t count) override {
    return counted([&](void* result) {
      call("count_other_bytes", count, from, count, static_cast<std::uint32_t>(value), result);
    });
  }

  void prepare(const Kernel& kernel) override { runtime::prepare(kernel); }

  void launch(const Kernel& kernel, const LaunchArgs& args) override { kernel.launch(nullptr, args); }

  void synchronize() override { calls_.check(calls_.ctx_synchronize(), "cuCtxSynchronize"); }

  std::vector<double> time_ms(const std::function<void()>& before, const std::function<void()>& work,
                              int repeat) override {
    std::vector<std::unique_ptr<CudaEvent>> begins, ends;
    for (int i = 0; i < repeat; ++i) {
      begins.push_back(std::make_unique<CudaEvent>(calls_));
      ends.push_back(std::make_unique<CudaEvent>(calls_));
    }
    for (std::size_t i = 0; i < begins.size(); ++i) {
      if (before) before();
      begins[i]->record();
      work();
      ends[i]->record();
    }
    synchronize();
    std::vector<double> ms;
    for (std::size_t i = 0; i < begins.size(); ++i) ms.push_back(ends[i]->ms_since(*begins[i]));
    return ms;
  }

 private:
  int attribute(int which) const {
    int value = 0;
    calls_.check(calls_.device_get_attribute(&value, which, ordinal_), "cuDeviceGetAttribute");
    return value;
  }

  runtime::DeviceKernel data_kernel(const std::string& name) {
    if (!data_image_) {
      const std::vector<std::string> options = {"--gpu-architecture=" + properties_.target.arch(), "--std=c++17"};
      data_image_ = driver_.load(runtime::compile_source(kDeviceKernels, "device_kernels.cu", options).cubin);
    }
    const auto found = data_kernels_.find(name);
    if (found != data_kernels_.end()) return found->second;
    const runtime::DeviceKernel kernel = driver_.kernel(*data_image_, name);
    driver_.prepare(kernel, ordinal_, 0);
    return data_kernels_[name] = kernel;
  }

  /// Launches a kernel of device_kernels.cu over `count` elements; the arguments' types are the kernel's.
  template <typename... Arguments>
  void call(const std::string& name, std::int64_t count, Arguments... arguments) {
    if (count == 0) return;
    void* pointers[] = {const_cast<void*>(static_cast<const void*>(&arguments))...};
    constexpr std::uint32_t kThreads = 256;
    const std::int64_t blocks =
        std::min<std::int64_t>((count + kThreads - 1) / kThreads, std::int64_t{32} * properties_.target.sm_count);
    const std::array<std::uint32_t, 3> grid{static_cast<std::uint32_t>(blocks), 1, 1};
    driver_.launch(data_kernel(name), grid, kThreads, 0, nullptr, pointers);
  }

  std::int64_t counted(const std::function<void(void*)>& count_into) {
    const Buffer result(*this, 8);
    set_bytes(result.data(), 0, 8);
    count_into(result.data());
    std::int64_t value = 0;
    download(&value, result.data(), 8);
    return value;
  }

  const runtime::Driver& driver_;
  int ordinal_;
  CudaCalls calls_;
  DeviceProperties properties_;
  std::shared_ptr<runtime::LoadedImage> data_image_;
  std::map<std::string, runtime::DeviceKernel> data_kernels_;
};

}  // namespace

std::unique_ptr<Device> open_cuda_device() { return std::make_unique<CudaDevice>(); }

}  // namespace jitconv::tools
