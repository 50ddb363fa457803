// The tensors of one operation on the device: laid out in an arena, filled in place from the counter-based generator,
// read back at chosen positions. And the same data on the host, as the reference takes them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "jitconv/kernel.h"
#include "support/arena.h"
#include "tools/check/data.h"
#include "tools/check/reference.h"

namespace jitconv::test {

/// Elements of the operation's result: y, dx or dw.
std::int64_t output_count(const ConvSpec& spec);

/// Lays out all tensors of `spec` in the arena, after a reset, and seals it. With room for packed weights the result
/// has both w and packed_w, of which a launch takes one.
LaunchArgs place_tensors(Arena& arena, const ConvSpec& spec, std::int64_t workspace_bytes,
                         std::int64_t packed_weight_bytes = 0);

/// Makes the inputs on the device and fills the results, and `workspace_bytes` of the workspace, with NaN.
void fill_tensors(tools::Device& device, const ConvSpec& spec, const check::Data& data, const LaunchArgs& args,
                  std::int64_t workspace_bytes);

/// What is wrong with the inputs, looked at in 64 places of each tensor, ends included; empty if they are the host's.
std::string input_difference(tools::Device& device, const ConvSpec& spec, const check::Data& data,
                             const LaunchArgs& args);

/// All results, as they lie in memory, one behind the other.
std::vector<std::byte> output_bytes(tools::Device& device, const ConvSpec& spec, const LaunchArgs& args);

/// Data and expected outputs of one launch.
struct Reference {
  check::DataKind kind = check::DataKind::exact;
  check::Data data;
  std::vector<std::int64_t> positions;
  std::vector<check::Expected> expected;
};

struct ReferenceLimits {
  std::int64_t multiplications = 10'000'000;  ///< up to here all outputs are computed
  std::int64_t outputs = 1 << 18;             ///< nor ever more than this
  std::int64_t sample = 2000;                 ///< else about so many
};

/// Single-threaded: many run at once. Seeds whose exact sums happen to be mostly zero, in tiny convolutions, are passed
/// over.
Reference make_reference(const ConvSpec& spec, check::DataKind kind, std::uint64_t seed, const ReferenceLimits& limits);

}  // namespace jitconv::test
