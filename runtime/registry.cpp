// Two maps under one lock: the kernels that are ready, and the builds under way as futures. See registry.h.
#include "runtime/registry.h"

#include <atomic>
#include <future>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "codegen/spec_fields.h"

namespace jitconv::runtime {
namespace {

struct Hash {
  std::size_t operator()(const RegistryKey& key) const noexcept {
    // Targets differ little within a process: their names are enough to tell them apart.
    const Target& target = key.target;
    std::size_t rest = static_cast<std::size_t>(target.compute_capability());
    for (const bool bit :
         {target.arch_specific, target.execution == Execution::host, key.options.line_info, key.options.counters}) {
      rest = rest * 2 + (bit ? 1 : 0);
    }
    return codegen::hash_value(key.spec) ^ rest * 0x9e3779b97f4a7c15u;
  }
};

}  // namespace

struct Registry::State {
  std::shared_mutex mutex;
  std::unordered_map<RegistryKey, Kernel, Hash> ready;
  std::unordered_map<RegistryKey, std::shared_future<Kernel>, Hash> under_way;
  std::atomic<std::uint64_t> hits{0};
};

Registry::Registry() : state_(std::make_unique<State>()) {}
Registry::~Registry() = default;

std::optional<Kernel> Registry::find(const RegistryKey& key) {
  const std::shared_lock lock(state_->mutex);
  const auto found = state_->ready.find(key);
  if (found == state_->ready.end()) return std::nullopt;
  state_->hits.fetch_add(1, std::memory_order_relaxed);
  return found->second;
}

Kernel Registry::find_or_build(const RegistryKey& key, const std::function<Kernel()>& build) {
  std::promise<Kernel> promise;
  {
    std::unique_lock lock(state_->mutex);
    if (const auto found = state_->ready.find(key); found != state_->ready.end()) {
      state_->hits.fetch_add(1, std::memory_order_relaxed);
      return found->second;
    }
    const auto [flight, mine] = state_->under_way.try_emplace(key);
    if (!mine) {
      const std::shared_future<Kernel> other = flight->second;
      lock.unlock();
      Kernel kernel = other.get();
      state_->hits.fetch_add(1, std::memory_order_relaxed);
      return kernel;
    }
    flight->second = promise.get_future().share();
  }
  try {
    Kernel kernel = build();
    {
      const std::unique_lock lock(state_->mutex);
      state_->ready.emplace(key, kernel);
      state_->under_way.erase(key);
    }
    promise.set_value(kernel);
    return kernel;
  } catch (...) {
    {
      const std::unique_lock lock(state_->mutex);
      state_->under_way.erase(key);
    }
    promise.set_exception(std::current_exception());
    throw;
  }
}

std::uint64_t Registry::hits() const { return state_->hits.load(std::memory_order_relaxed); }

Registry& registry() {
  static Registry* const instance = new Registry;
  return *instance;
}

}  // namespace jitconv::runtime
