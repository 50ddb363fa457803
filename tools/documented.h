// The documented configurations: convolutions with a name, which every tool takes as --config and every test suite
// runs. The shapes of KernelBench's tasks are also kept as CSV in tests/shapes; a test holds both to the same numbers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "jitconv/spec.h"

namespace jitconv::tools {

struct DocumentedConfiguration {
  std::string name;  ///< "A_bias", "KB_L1_82"
  ConvSpec spec;
};

/// In a fixed order: the headline cases A to D with and without bias, then KernelBench level 1 by task number, at its
/// present sizes and (`_small`) at those of its first release; behind them, in the same way, its transposed
/// convolutions, which are data gradients.
const std::vector<DocumentedConfiguration>& documented_configurations();

/// The headline cases without bias as tensor cores compute them: A_tf32, A_bf16, ..., D_bf16. They stand beside the
/// documented configurations, for which every math mode and type is tested, and are not among them.
const std::vector<DocumentedConfiguration>& tensor_core_configurations();

/// Searches both lists; null if there is no such name.
const DocumentedConfiguration* find_documented(std::string_view name);

}  // namespace jitconv::tools
