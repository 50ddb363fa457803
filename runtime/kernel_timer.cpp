// See kernel_timer.h. Everything runs on the default stream.
#include "runtime/kernel_timer.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <string>

#include "runtime/compile.h"
#include "runtime/cuda_calls.h"
#include "runtime/launch_rules.h"

namespace jitconv::runtime {
namespace {

using codegen::Tensor;
using DevicePointer = CudaCalls::DevicePointer;

class DeviceMemory {
 public:
  DeviceMemory(const CudaCalls& calls, std::int64_t bytes) : calls_(calls) {
    if (bytes > 0) calls_.check(calls_.mem_alloc(&data_, static_cast<std::size_t>(bytes)), "cuMemAlloc");
  }
  ~DeviceMemory() {
    if (data_ != 0) calls_.mem_free(data_);
  }
  DeviceMemory(DeviceMemory&& other) noexcept : calls_(other.calls_), data_(std::exchange(other.data_, 0)) {}
  DeviceMemory& operator=(DeviceMemory&&) = delete;
  DevicePointer address() const { return data_; }
  void* pointer() const { return reinterpret_cast<void*>(data_); }

 private:
  const CudaCalls& calls_;
  DevicePointer data_ = 0;
};

/// Numbers from -1 to 1 as the type stores them. Zeros would make a power-limited GPU faster than it is.
std::string random_block(DataType type) {
  constexpr std::size_t kElements = 1 << 18;
  std::string bytes(kElements * static_cast<std::size_t>(element_bytes(type)), '\0');
  std::mt19937 random(1);
  for (std::size_t i = 0; i < kElements; ++i) {
    const auto bits = static_cast<std::uint32_t>(random());
    if (type == DataType::f32) {
      const std::uint32_t value = (bits & 0x807fffffu) | (120u + bits / 0x800000u % 7) << 23;
      std::memcpy(bytes.data() + 4 * i, &value, 4);
    } else {
      const bool half = type == DataType::f16;
      const std::uint32_t exponent = (half ? 8u : 120u) + bits / 0x10000u % 7;
      const auto value = static_cast<std::uint16_t>((bits & (half ? 0x83ffu : 0x807fu)) | exponent << (half ? 10 : 7));
      std::memcpy(bytes.data() + 2 * i, &value, 2);
    }
  }
  return bytes;
}

/// The tensors of one convolution, each with random numbers.
class Tensors {
 public:
  Tensors(const CudaCalls& calls, const codegen::ConvPlan& plan) : calls_(calls), rules_(plan) {
    const std::string block = random_block(plan.spec.dtype);
    for (std::size_t i = 0; i < static_cast<std::size_t>(Tensor::scratch); ++i) {
      const std::int64_t bytes = rules_.bytes(static_cast<Tensor>(i));
      memory_.emplace_back(calls, bytes);
      fill(memory_.back().address(), bytes, block);
      bytes_ += bytes;
    }
  }

  std::int64_t bytes() const { return bytes_; }

  LaunchArgs arguments(void* workspace) const {
    const auto at = [this](Tensor tensor) { return memory_[static_cast<std::size_t>(tensor)].pointer(); };
    LaunchArgs args;
    args.x = at(Tensor::x), args.w = at(Tensor::w), args.bias = at(Tensor::bias), args.residual = at(Tensor::residual);
    args.y = at(Tensor::y), args.dy = at(Tensor::dy), args.dx = at(Tensor::dx), args.dw = at(Tensor::dw);
    args.db = at(Tensor::db), args.saved = at(Tensor::saved);
    args.workspace = workspace;
    return args;
  }

 private:
  /// One block from the host, then copies of what is there.
  void fill(DevicePointer to, std::int64_t bytes, const std::string& block) const {
    if (bytes == 0) return;
    const auto all = static_cast<std::size_t>(bytes);
    std::size_t filled = std::min(all, block.size());
    calls_.check(calls_.memcpy_htod(to, block.data(), filled), "cuMemcpyHtoD");
    while (filled < all) {
      const std::size_t more = std::min(filled, all - filled);
      calls_.check(calls_.memcpy_dtod_async(to + filled, to, more, nullptr), "cuMemcpyDtoDAsync");
      filled += more;
    }
  }

  const CudaCalls& calls_;
  const LaunchRules rules_;
  std::vector<DeviceMemory> memory_;
  std::int64_t bytes_ = 0;
};

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

std::vector<std::optional<double>> time_on_current_device(std::span<const Kernel> kernels, int launches) {
  constexpr int kWarmup = 2;
  const CudaCalls calls;
  const codegen::ConvPlan& plan = plan_of(kernels.front());
  const Tensors tensors(calls, plan);
  const std::int64_t l2_bytes = plan.target.l2_bytes;
  const DeviceMemory flushed(calls, tensors.bytes() < 4 * l2_bytes ? 2 * l2_bytes : 0);
  const auto time = [&](const Kernel& kernel) {
    const DeviceMemory workspace(calls, kernel.workspace_bytes());
    const LaunchArgs args = tensors.arguments(workspace.pointer());
    std::vector<double> ms;
    for (int i = 0; i < kWarmup + launches; ++i) {
      CudaEvent begin(calls), end(calls);
      if (flushed.address() != 0)
        calls.check(calls.memset_d8_async(flushed.address(), 0, static_cast<std::size_t>(2 * l2_bytes), nullptr),
                    "cuMemsetD8Async");
      begin.record();
      kernel.launch(nullptr, args);
      end.record();
      calls.check(calls.ctx_synchronize(), "cuCtxSynchronize");
      if (i >= kWarmup) ms.push_back(end.ms_since(begin));
    }
    return median(std::move(ms));
  };
  std::vector<std::optional<double>> result;
  for (const Kernel& kernel : kernels) {
    try {
      prepare(kernel);
      result.emplace_back(time(kernel));
    } catch (const CudaError& error) {
      if (error.code() != ErrorCode::cuda) throw;
      result.emplace_back();  // a context that a kernel has spoiled fails for the others, too
    }
  }
  return result;
}

}  // namespace jitconv::runtime
