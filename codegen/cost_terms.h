// What each entry of the cost model's tables adds to the modelled time of a plan, to see what a price consists of.
// Found by pricing with tables in which one entry is a little larger, so that no formula is written twice.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "codegen/plan.h"

namespace jitconv::codegen {

/// The time that an entry accounts for: by how much the modelled time grows when the entry does, in proportion. Where
/// all entries are times, their terms add up to the modelled time; those of rates are negative.
struct CostTerm {
  std::string_view entry;  ///< "wgmma.loads.latency"
  double picoseconds;
};

/// For each of enumerate_plans(spec, target, limit), in their order: the terms that are not zero.
std::vector<std::vector<CostTerm>> cost_terms(const ConvSpec& spec, const Target& target, std::size_t limit);

}  // namespace jitconv::codegen
