// The kernels of this process: (ConvSpec, Target, CompileOptions) -> Kernel, with single flight. Threads that ask for a
// kernel nobody has yet share one build of it; a build that fails is forgotten, so that the next caller tries again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "jitconv/kernel.h"

namespace jitconv::runtime {

struct RegistryKey {
  ConvSpec spec;
  Target target;
  CompileOptions options;
  bool operator==(const RegistryKey&) const = default;
};

class Registry {
 public:
  Registry();
  ~Registry();

  /// The kernel, if it has been built. Cheap: one hash and a shared lock, no allocation.
  std::optional<Kernel> find(const RegistryKey& key);

  /// The kernel; if nobody has built it, runs `build` without a lock held while other callers of the same key wait and
  /// then get what it returned or threw. `build` may call find_or_build() for another key, but no two builds may wait
  /// for each other.
  Kernel find_or_build(const RegistryKey& key, const std::function<Kernel()>& build);

  /// How often a caller got a kernel without building it.
  std::uint64_t hits() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The registry behind compile(). Never destroyed: at exit the driver may be gone before static objects are.
Registry& registry();

}  // namespace jitconv::runtime
