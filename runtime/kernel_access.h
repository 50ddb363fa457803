// The way from a Kernel to the state its copies share, and back, for runtime/ and its tests. Not in kernel.h: the state
// is no part of the interface.
#pragma once

#include <memory>
#include <utility>

#include "jitconv/kernel.h"

namespace jitconv::detail {

struct KernelAccess {
  static Kernel make(std::shared_ptr<const KernelState> state) { return Kernel(std::move(state)); }
  static const KernelState& state(const Kernel& kernel) { return *kernel.state_; }
};

}  // namespace jitconv::detail
