// What a Kernel shares among its copies: the plan and source it came from, the compiled image, and, once it is needed,
// the loaded library with the devices it is ready on. Launching a kernel that is ready takes no lock and no memory.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "codegen/plan.h"
#include "codegen/source.h"
#include "jitconv/kernel.h"
#include "runtime/driver.h"
#include "runtime/launch_rules.h"

namespace jitconv::runtime {

/// A compiled image and how it was come by.
struct Binary {
  std::string image;  ///< cubin
  std::string log;    ///< what the compiler said
  bool from_cache = false;
};

}  // namespace jitconv::runtime

namespace jitconv::detail {

struct KernelState {
 public:
  /// `recompile` is called at most once: if the driver refuses an image that came from the cache.
  KernelState(codegen::ConvPlan plan, codegen::KernelSource source, std::string cache_key, runtime::Binary binary,
              std::function<runtime::Binary(const KernelState&)> recompile);

  const codegen::ConvPlan plan;
  const codegen::KernelSource source;
  const std::string cache_key;

  /// The image that is or would be loaded. References stay valid as long as the state.
  const runtime::Binary& binary() const { return *binary_.load(std::memory_order_acquire); }
  std::vector<Resources> resources() const;

  /// Loads the kernel for `device`, the one of the current context, unless that is done. Throws CudaError.
  void prepare(const runtime::Driver& driver, int device) const {
    if (!ready_on(device)) [[unlikely]]
      load(driver, device);
  }
  void launch(void* stream, const LaunchArgs& args) const;

 private:
  static constexpr std::size_t kMostArguments = 8;

  /// One entry of the source, ready to launch: which pointer each parameter is, and the loaded kernel.
  struct Step {
    const codegen::KernelEntry* entry = nullptr;
    std::array<std::uint8_t, kMostArguments> roles{};
    std::size_t arguments = 0;
    runtime::DeviceKernel kernel;
    runtime::DeviceKernelInfo info;
  };

  /// Devices beyond 63 are never remembered as ready: there a launch takes a lock, and works.
  bool ready_on(int device) const {
    return device < 64 && (ready_devices_.load(std::memory_order_acquire) >> device & 1) != 0;
  }
  void load(const runtime::Driver& driver, int device) const;
  void load_image(const runtime::Driver& driver, int device) const;
  void require_fitting_device(const runtime::Driver& driver, int device) const;

  const runtime::LaunchRules rules_;
  const runtime::Binary first_binary_;
  const std::function<runtime::Binary(const KernelState&)> recompile_;

  // Written under mutex_; read without it once ready_devices_ says so.
  mutable std::mutex mutex_;
  mutable std::unique_ptr<const runtime::Binary> second_binary_;
  mutable std::atomic<const runtime::Binary*> binary_;
  mutable std::shared_ptr<runtime::LoadedImage> image_;
  mutable std::vector<Step> steps_;
  mutable std::atomic<std::uint64_t> ready_devices_{0};
};

}  // namespace jitconv::detail
