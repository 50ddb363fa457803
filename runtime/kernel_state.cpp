// Loading and launching. The slow half (load) runs once per kernel and device under the state's lock; the fast half
// (launch) checks the pointers, reads one atomic and calls the backend.
#include "runtime/kernel_state.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/cuda_abi.h"
#include "runtime/fork_guard.h"
#include "runtime/log.h"
#include "runtime/ptxas_log.h"

namespace jitconv::detail {
namespace {

bool is_written(const codegen::KernelEntry& entry, codegen::ArgumentRole role) {
  switch (role) {
    case codegen::ArgumentRole::y:
      return true;
    case codegen::ArgumentRole::packed_w:
      return entry.packs_weights;
    case codegen::ArgumentRole::partial_sums:  // written by the kernel that has no y
      return std::none_of(entry.arguments.begin(), entry.arguments.end(),
                          [](const codegen::Argument& one) { return one.role == codegen::ArgumentRole::y; });
    default:
      return false;
  }
}

}  // namespace

KernelState::KernelState(const runtime::Backend& the_backend, codegen::ConvPlan the_plan,
                         codegen::KernelSource the_source, std::string key, runtime::Binary binary,
                         std::function<runtime::Binary(const KernelState&)> recompile)
    : backend(the_backend),
      plan(std::move(the_plan)),
      source(std::move(the_source)),
      cache_key(std::move(key)),
      rules_(plan),
      first_binary_(std::move(binary)),
      recompile_(std::move(recompile)),
      binary_(&first_binary_) {
  for (const codegen::KernelEntry& entry : source.entries) {
    auto& [launch, roles] = steps_.emplace_back();
    launch.entry = &entry;
    launch.parameters = entry.arguments.size();
    if (launch.parameters > roles.size()) throw InternalError(entry.name + " has too many parameters");
    for (std::size_t i = 0; i < launch.parameters; ++i) {
      const codegen::ArgumentRole role = entry.arguments[i].role;
      roles[i] = static_cast<std::uint8_t>(role);
      launch.extents[i] = {rules_.bytes(role), is_written(entry, role)};
    }
  }
}

std::vector<Resources> KernelState::resources() const {
  if (ready_devices_.load(std::memory_order_acquire) == 0)
    return runtime::resources_from_log(binary().log, source.entries);
  const std::lock_guard lock(mutex_);
  std::vector<Resources> all;
  for (const auto& [launch, roles] : steps_) {
    const runtime::DeviceKernelInfo& info = launch.info;
    all.push_back({info.registers, info.local_bytes, info.static_shared_bytes + launch.entry->shared_bytes,
                   static_cast<int>(launch.entry->threads)});
  }
  return all;
}

void KernelState::load_image(int device) const {
  auto image = backend.load(binary().image);
  std::vector<Step> steps = steps_;
  for (auto& [launch, roles] : steps) {
    launch.kernel = backend.kernel(*image, launch.entry->name);
    launch.info = backend.prepare(launch.kernel, device, launch.entry->shared_bytes);
  }
  image_ = std::move(image);
  steps_.swap(steps);
}

void KernelState::load(int device) const {
  if (source.entries.empty()) return;
  const std::lock_guard lock(mutex_);
  if (ready_on(device)) return;
  backend.require_fitting_device(plan.target, device);
  if (image_ != nullptr) {
    for (const auto& [launch, roles] : steps_) {
      backend.prepare(launch.kernel, device, launch.entry->shared_bytes);
    }
  } else {
    try {
      load_image(device);
    } catch (const Error& error) {
      // A file of the cache that was whole but is of no use must cost a compilation, not the launch.
      if (!backend.refuses_image(error) || !binary().from_cache) throw;
      runtime::log(runtime::LogLevel::warn, fmt::format("the cached image of {} is refused, compiling again: {}",
                                                        source.entries.front().name, error.what()));
      second_binary_ = std::make_unique<const runtime::Binary>(recompile_(*this));
      binary_.store(second_binary_.get(), std::memory_order_release);
      load_image(device);
    }
  }
  if (device < 64) ready_devices_.fetch_or(std::uint64_t{1} << device, std::memory_order_release);
}

void KernelState::make_ready(void* stream) const {
  runtime::refuse_after_fork();
  const int device = backend.ensure_context();
  if (ready_on(device)) [[likely]]
    return;
  if (backend.is_capturing(stream)) {
    throw CudaError(ErrorCode::cuda, runtime::cuda::kCaptureUnsupported, "launch",
                    fmt::format("the stream is being captured and the kernel is not loaded on device {} yet: compile "
                                "for the current device, or launch once, before the capture",
                                device));
  }
  load(device);
}

void KernelState::launch_step(const Step& step, void* stream, const runtime::RolePointers& pointers) const {
  std::array<void*, runtime::LaunchStep::kMostParameters> parameters;
  for (std::size_t i = 0; i < step.launch.parameters; ++i) {
    parameters[i] = const_cast<void*>(static_cast<const void*>(&pointers[step.roles[i]]));
  }
  backend.launch(step.launch, stream, parameters.data());
}

void KernelState::launch(void* stream, const LaunchArgs& args) const {
  if (source.entries.empty()) return;
  const runtime::RolePointers given = runtime::by_role(args);
  rules_.check(given);
  make_ready(stream);
  const bool packed = rules_.packed(given);
  const runtime::RolePointers pointers = rules_.resolved(given);
  for (const Step& step : steps_) {
    if (!packed || !step.launch.entry->packs_weights) launch_step(step, stream, pointers);
  }
}

void KernelState::pack_weights(void* stream, const void* w, void* packed_w) const {
  rules_.check_packing(w, packed_w);
  make_ready(stream);
  LaunchArgs args;
  args.w = w;
  args.packed_w = packed_w;
  const runtime::RolePointers pointers = runtime::by_role(args);
  for (const Step& step : steps_) {
    if (step.launch.entry->packs_weights) launch_step(step, stream, pointers);
  }
}

}  // namespace jitconv::detail
