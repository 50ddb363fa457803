// Times kernels of one convolution on the current device, for tuning: allocates its tensors, fills them with random
// numbers, launches and measures. Knows nothing of plans. tools/measure.h is the one that checks results as well.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "jitconv/kernel.h"

namespace jitconv::runtime {

/// The median of `launches` launches of each kernel in milliseconds; none for one that the driver refuses to launch.
/// All are of one spec. L2 is flushed before a launch whose tensors might stay in it. Throws CudaError.
std::vector<std::optional<double>> time_on_current_device(std::span<const Kernel> kernels, int launches);

}  // namespace jitconv::runtime
