// The kernels that are ready, under every key they were asked for, and the builds under way as futures. What is handed
// out is a lease: a second shared pointer to the kernel, whose last copy tells the registry. See registry.h.
#include "runtime/registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <future>
#include <list>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

#include "cache/printable.h"
#include "codegen/spec_fields.h"
#include "runtime/env.h"
#include "runtime/fork_guard.h"
#include "runtime/kernel_access.h"
#include "runtime/kernel_state.h"
#include "runtime/log.h"

namespace jitconv::runtime {
namespace {

/// The most keys of one kernel. The first key stays. If there are too many, the oldest of the others is forgotten, and
/// its spec is planned again when somebody asks for it.
constexpr std::size_t kMostKeys = 16;

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

std::size_t limit_from_environment() {
  constexpr std::size_t kDefault = 512;
  const std::string text = kernel_limit_from_environment();
  if (text.empty()) return kDefault;
  std::size_t limit = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), limit);
  if (error == std::errc() && end == text.data() + text.size()) return limit;
  log(LogLevel::warn, fmt::format("JITCONV_MAX_KERNELS is {}, must be a number of kernels: using {}",
                                  cache::printable(text), kDefault));
  return kDefault;
}

}  // namespace

struct Registry::State : std::enable_shared_from_this<Registry::State> {
  struct Slot;
  using Slots = std::list<Slot>;

  /// Shared by the copies of a Kernel that was handed out. Does nothing until the registry fills it in.
  struct Lease {
    Lease() = default;
    ~Lease() {
      if (registry != nullptr) registry->give_back(slot);
    }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;

    std::shared_ptr<State> registry;
    Slots::iterator slot;
  };

  struct Slot {
    std::shared_ptr<const detail::KernelState> kernel;
    std::vector<RegistryKey> keys;  ///< the first is never forgotten
    std::weak_ptr<Lease> lease{};   ///< the latest one
    int leases = 0;                 ///< whose end is not known here yet
  };

  explicit State(std::size_t most) : most_kernels(most) {}

  // With the mutex held; these change nothing when they throw.
  Kernel lend(Slots::iterator slot, std::shared_ptr<Lease> fresh) noexcept;
  void add_key(Slots::iterator slot, const RegistryKey& key);
  void drop_oldest(std::size_t count, Slots& dropped) noexcept;
  void drop_beyond_limit(Slots& dropped) noexcept;

  Kernel store(const RegistryKey& key, const Kernel& built);
  void give_back(Slots::iterator slot) noexcept;

  const std::size_t most_kernels;
  mutable std::shared_mutex mutex;
  std::unordered_map<RegistryKey, Slots::iterator, Hash> ready;
  std::unordered_map<RegistryKey, std::shared_future<Kernel>, Hash> under_way;
  Slots held, unheld;  ///< the latter in the order in which their last holders went
  std::atomic<std::uint64_t> hits{0};
  std::atomic<std::size_t> kernels{0};  ///< held and unheld; atomic for size(), which takes no lock
};

/// `fresh` is used if nobody holds the kernel.
Kernel Registry::State::lend(Slots::iterator slot, std::shared_ptr<Lease> fresh) noexcept {
  std::shared_ptr<Lease> lease = slot->lease.lock();
  if (lease == nullptr) {
    lease = std::move(fresh);
    lease->registry = shared_from_this();
    lease->slot = slot;
    slot->lease = lease;
    if (slot->leases++ == 0) held.splice(held.end(), unheld, slot);
  }
  return detail::KernelAccess::make({std::move(lease), slot->kernel.get()});
}

void Registry::State::add_key(Slots::iterator slot, const RegistryKey& key) {
  slot->keys.push_back(key);
  try {
    ready.emplace(key, slot);
  } catch (...) {
    slot->keys.pop_back();
    throw;
  }
  if (slot->keys.size() <= kMostKeys) return;
  ready.erase(slot->keys[1]);
  slot->keys.erase(slot->keys.begin() + 1);
}

void Registry::State::drop_oldest(std::size_t count, Slots& dropped) noexcept {
  for (; count > 0; --count) {
    for (const RegistryKey& key : unheld.front().keys) ready.erase(key);
    dropped.splice(dropped.end(), unheld, unheld.begin());
    kernels.fetch_sub(1, std::memory_order_relaxed);
  }
}

void Registry::State::drop_beyond_limit(Slots& dropped) noexcept {
  const std::size_t ready_kernels = kernels.load(std::memory_order_relaxed);
  if (ready_kernels > most_kernels) drop_oldest(std::min(ready_kernels - most_kernels, unheld.size()), dropped);
}

Kernel Registry::State::store(const RegistryKey& key, const Kernel& built) {
  const RegistryKey canonical{built.spec(), built.target(), key.options};
  auto lease = std::make_shared<Lease>();
  Slots made, dropped;  // what is dropped is destroyed without the lock
  const detail::KernelState& state = detail::KernelAccess::state(built);
  made.push_back({state.shared_from_this(), {key}});
  const std::unique_lock lock(mutex);
  const auto known = ready.find(canonical);
  Slots::iterator slot = made.begin();
  if (known != ready.end() && known->second->kernel.get() == &state) {
    slot = known->second;
    add_key(slot, key);
  } else {
    ready.emplace(key, slot);
    unheld.splice(unheld.end(), made);
    kernels.fetch_add(1, std::memory_order_relaxed);
  }
  Kernel kernel = lend(slot, std::move(lease));
  drop_beyond_limit(dropped);
  under_way.erase(key);
  return kernel;
}

void Registry::State::give_back(Slots::iterator slot) noexcept {
  if (is_forked_after_use()) return;  // the lock may never be free again
  Slots dropped;
  const std::unique_lock lock(mutex);
  if (--slot->leases > 0) return;  // lent again meanwhile
  unheld.splice(unheld.end(), held, slot);
  drop_beyond_limit(dropped);
}

Registry::Registry(std::size_t most_kernels) : state_(std::make_shared<State>(most_kernels)) {}
Registry::~Registry() = default;

std::optional<Kernel> Registry::find(const RegistryKey& key) {
  {
    const std::shared_lock lock(state_->mutex);
    const auto found = state_->ready.find(key);
    if (found == state_->ready.end()) return std::nullopt;
    const State::Slot& slot = *found->second;
    if (std::shared_ptr<State::Lease> lease = slot.lease.lock()) [[likely]] {
      state_->hits.fetch_add(1, std::memory_order_relaxed);
      return detail::KernelAccess::make({std::move(lease), slot.kernel.get()});
    }
  }
  auto lease = std::make_shared<State::Lease>();
  const std::unique_lock lock(state_->mutex);
  const auto found = state_->ready.find(key);
  if (found == state_->ready.end()) return std::nullopt;
  state_->hits.fetch_add(1, std::memory_order_relaxed);
  return state_->lend(found->second, std::move(lease));
}

Kernel Registry::find_or_build(const RegistryKey& key, const std::function<Kernel()>& build) {
  std::promise<Kernel> promise;
  auto lease = std::make_shared<State::Lease>();
  {
    std::unique_lock lock(state_->mutex);
    if (const auto found = state_->ready.find(key); found != state_->ready.end()) {
      state_->hits.fetch_add(1, std::memory_order_relaxed);
      return state_->lend(found->second, std::move(lease));
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
    Kernel kernel = state_->store(key, build());
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

std::size_t Registry::drop_unheld() {
  State::Slots dropped;
  const std::unique_lock lock(state_->mutex);
  state_->drop_oldest(state_->unheld.size(), dropped);
  return dropped.size();
}

std::uint64_t Registry::hits() const { return state_->hits.load(std::memory_order_relaxed); }

std::size_t Registry::size() const { return state_->kernels.load(std::memory_order_relaxed); }

Registry& registry() {
  static Registry* const instance = [] {
    forbid_use_after_fork();
    return new Registry(limit_from_environment());
  }();
  return *instance;
}

}  // namespace jitconv::runtime
