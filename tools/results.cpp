// See results.h.
#include "tools/results.h"

#include <algorithm>

#include "tools/check/number.h"
#include "tools/check/tensors.h"

namespace jitconv::tools {

std::vector<float> results_at(Device& device, const ConvSpec& spec, const LaunchArgs& args,
                              std::span<const std::int64_t> positions) {
  std::vector<float> values;
  values.reserve(positions.size());
  for (const check::Result& result : check::results_of(spec)) {
    const auto begin = std::lower_bound(positions.begin(), positions.end(), result.first);
    std::vector<std::int64_t> places(begin, std::lower_bound(begin, positions.end(), result.first + result.count));
    if (places.empty()) continue;
    for (std::int64_t& place : places) place -= result.first;
    std::vector<std::uint32_t> bits(places.size());
    device.gather(args.*result.pointer, result.type, places, bits);
    for (const std::uint32_t one : bits) values.push_back(check::from_bits(result.type, one));
  }
  return values;
}

std::int64_t count_nan_results(Device& device, const ConvSpec& spec, const LaunchArgs& args) {
  std::int64_t count = 0;
  for (const check::Result& result : check::results_of(spec))
    count += device.count_nan(args.*result.pointer, result.type, result.count);
  return count;
}

}  // namespace jitconv::tools
