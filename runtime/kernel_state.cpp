// Loading and launching. The slow half (load) runs once per kernel and device under the state's lock; the fast half
// (launch) checks the pointers, reads one atomic and calls the driver.
#include "runtime/kernel_state.h"

#include <fmt/format.h>

#include "runtime/cuda_abi.h"
#include "runtime/log.h"
#include "runtime/ptxas_log.h"

namespace jitconv::detail {
namespace {

/// Cubins run on the minor version they were compiled for and later ones of the same major; arch-specific ones only on
/// exactly their own.
bool runs_on(const Target& compiled_for, const Target& device) {
  if (compiled_for.major != device.major) return false;
  return compiled_for.arch_specific && compiled_for.major >= 9 ? compiled_for.minor == device.minor
                                                               : compiled_for.minor <= device.minor;
}

}  // namespace

KernelState::KernelState(codegen::ConvPlan the_plan, codegen::KernelSource the_source, std::string key,
                         runtime::Binary binary, std::function<runtime::Binary(const KernelState&)> recompile)
    : plan(std::move(the_plan)),
      source(std::move(the_source)),
      cache_key(std::move(key)),
      rules_(plan, source.workspace_bytes),
      first_binary_(std::move(binary)),
      recompile_(std::move(recompile)),
      binary_(&first_binary_) {
  for (const codegen::KernelEntry& entry : source.entries) {
    Step step;
    step.entry = &entry;
    if (entry.arguments.size() > kMostArguments) throw InternalError(entry.name + " has too many parameters");
    for (const codegen::Argument& argument : entry.arguments) {
      step.roles[step.arguments++] = static_cast<std::uint8_t>(argument.role);
    }
    steps_.push_back(step);
  }
}

std::vector<Resources> KernelState::resources() const {
  if (ready_devices_.load(std::memory_order_acquire) == 0)
    return runtime::resources_from_log(binary().log, source.entries);
  const std::lock_guard lock(mutex_);
  std::vector<Resources> all;
  for (const Step& step : steps_) {
    all.push_back({step.info.registers, step.info.local_bytes, step.info.static_shared_bytes + step.entry->shared_bytes,
                   static_cast<int>(step.entry->threads)});
  }
  return all;
}

void KernelState::require_fitting_device(const runtime::Driver& driver, int device) const {
  const Target target = driver.target_of(device);
  if (runs_on(plan.target, target)) return;
  throw CudaError(ErrorCode::unsupported, 0, "launch",
                  fmt::format("the kernel was compiled for {}, which device {}, an {}, cannot run", plan.target.arch(),
                              device, target.arch()));
}

void KernelState::load_image(const runtime::Driver& driver, int device) const {
  auto image = driver.load(binary().image);
  std::vector<Step> steps = steps_;
  for (Step& step : steps) {
    step.kernel = driver.kernel(*image, step.entry->name);
    step.info = driver.prepare(step.kernel, device, step.entry->shared_bytes);
  }
  image_ = std::move(image);
  steps_.swap(steps);
}

void KernelState::load(const runtime::Driver& driver, int device) const {
  if (source.entries.empty()) return;
  const std::lock_guard lock(mutex_);
  if (ready_on(device)) return;
  require_fitting_device(driver, device);
  if (image_ != nullptr) {
    for (const Step& step : steps_) driver.prepare(step.kernel, device, step.entry->shared_bytes);
  } else {
    try {
      load_image(driver, device);
    } catch (const CudaError& error) {
      // A file of the cache that was whole but is of no use must cost a compilation, not the launch.
      if (!runtime::Driver::refuses_image(error.result()) || !binary().from_cache) throw;
      runtime::log(runtime::LogLevel::warn,
                   fmt::format("the driver refuses the cached image of {}, compiling again: {}",
                               source.entries.front().name, error.what()));
      second_binary_ = std::make_unique<const runtime::Binary>(recompile_(*this));
      binary_.store(second_binary_.get(), std::memory_order_release);
      load_image(driver, device);
    }
  }
  if (device < 64) ready_devices_.fetch_or(std::uint64_t{1} << device, std::memory_order_release);
}

void KernelState::launch(void* stream, const LaunchArgs& args) const {
  if (source.entries.empty()) return;
  const runtime::RolePointers pointers = runtime::by_role(args);
  rules_.check(pointers);
  const runtime::Driver& driver = runtime::Driver::get();
  const int device = driver.ensure_context();
  if (!ready_on(device)) [[unlikely]] {
    if (driver.is_capturing(stream)) {
      throw CudaError(ErrorCode::cuda, runtime::cuda::kCaptureUnsupported, "launch",
                      fmt::format("the stream is being captured and the kernel is not loaded on device {} yet: compile "
                                  "for the current device, or launch once, before the capture",
                                  device));
    }
    load(driver, device);
  }
  for (const Step& step : steps_) {
    std::array<void*, kMostArguments> parameters;
    for (std::size_t i = 0; i < step.arguments; ++i) {
      parameters[i] = const_cast<void*>(static_cast<const void*>(&pointers[step.roles[i]]));
    }
    driver.launch(step.kernel, step.entry->grid, step.entry->threads, step.entry->shared_bytes, stream,
                  parameters.data());
  }
}

}  // namespace jitconv::detail
