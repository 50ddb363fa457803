// What a launch wrote, read back from the device at the positions of check/positions.h.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "jitconv/kernel.h"
#include "tools/device.h"

namespace jitconv::tools {

/// The elements at `positions`, which ascend.
std::vector<float> results_at(Device& device, const ConvSpec& spec, const LaunchArgs& args,
                              std::span<const std::int64_t> positions);

/// Elements of all results that are NaN.
std::int64_t count_nan_results(Device& device, const ConvSpec& spec, const LaunchArgs& args);

}  // namespace jitconv::tools
