// The entries of the cost model's tables by name, for programs that print or change them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "codegen/costs/costs.h"

namespace jitconv::codegen {

struct CostEntry {
  std::string_view name;  ///< "wgmma.loads.latency"
  std::int64_t* value;    ///< in the tables
};

/// All entries of `costs`, in the order in which they are declared.
std::vector<CostEntry> entries_of(Costs& costs);

}  // namespace jitconv::codegen
