// The kernels of this process: (ConvSpec, Target, CompileOptions) -> Kernel, with single flight. Threads that ask for a
// kernel nobody has yet share one build of it; a build that fails is forgotten, so that the next caller tries again.
// If there are more kernels than a limit, those that nobody holds are dropped, beginning with the one that has been
// without a holder longest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
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
  /// `most_kernels`: more are kept only as long as somebody holds a Kernel of each.
  explicit Registry(std::size_t most_kernels);
  ~Registry();

  /// The kernel, if it has been built and not dropped. Cheap: one hash, and a shared lock and no allocation if somebody
  /// holds the kernel.
  std::optional<Kernel> find(const RegistryKey& key);

  /// The kernel; if nobody has built it, runs `build` without a lock held while other callers of the same key wait and
  /// then get what it returned or threw. `build` may call find_or_build() for another key, but no two builds may wait
  /// for each other. A kernel whose spec is not the key's is registered under its own spec by such a call.
  Kernel find_or_build(const RegistryKey& key, const std::function<Kernel()>& build);

  /// Drops every kernel that nobody holds; returns how many.
  std::size_t drop_unheld();

  /// How often a caller got a kernel without building it.
  std::uint64_t hits() const;
  /// Kernels in memory, held or not. Takes no lock: a child of fork() may ask.
  std::size_t size() const;

 private:
  struct State;
  /// Shared with the kernels handed out, which report back when their last copy goes.
  std::shared_ptr<State> state_;
};

/// The registry behind compile(). Never destroyed: at exit the driver may be gone before static objects are.
Registry& registry();

}  // namespace jitconv::runtime
