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
#include "runtime/backend.h"
#include "runtime/launch_rules.h"

namespace jitconv::detail {

struct KernelState : std::enable_shared_from_this<KernelState> {
 public:
  /// `recompile` is called at most once: if the backend refuses an image that came from the cache.
  KernelState(const runtime::Backend& backend, codegen::ConvPlan plan, codegen::KernelSource source,
              std::string cache_key, runtime::Binary binary,
              std::function<runtime::Binary(const KernelState&)> recompile);

  const runtime::Backend& backend;
  const codegen::ConvPlan plan;
  const codegen::KernelSource source;
  const std::string cache_key;

  /// The image that is or would be loaded. References stay valid as long as the state.
  const runtime::Binary& binary() const { return *binary_.load(std::memory_order_acquire); }
  std::vector<Resources> resources() const;

  /// Loads the kernel for the current device, unless that is done. Throws what the backend does.
  void prepare() const {
    const int device = backend.ensure_context();
    if (!ready_on(device)) [[unlikely]]
      load(device);
  }
  void launch(void* stream, const LaunchArgs& args) const;
  void pack_weights(void* stream, const void* w, void* packed_w) const;
  /// Bytes of the workspace a launch needs.
  std::int64_t workspace_bytes(bool with_packed_weights) const {
    return with_packed_weights ? plan.workspace_bytes_with_packed_weights() : plan.workspace_bytes();
  }

 private:
  /// One entry of the source: its launch, and which tensor each of its parameters leads to.
  struct Step {
    runtime::LaunchStep launch;
    std::array<std::uint8_t, runtime::LaunchStep::kMostParameters> tensors{};
  };

  /// Devices beyond 63 are never remembered as ready: there a launch takes a lock, and works.
  bool ready_on(int device) const {
    return device < 64 && (ready_devices_.load(std::memory_order_acquire) >> device & 1) != 0;
  }
  void make_ready(void* stream) const;
  void launch_step(const Step& step, void* stream, const runtime::TensorPointers& pointers, bool overlap) const;
  void load(int device) const;
  void load_image(int device) const;

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
