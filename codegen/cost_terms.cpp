// See cost_terms.h.
#include "codegen/cost_terms.h"

#include <algorithm>
#include <cstdint>

#include "codegen/costs/entries.h"

namespace jitconv::codegen {
namespace {

/// Whether a family has entries that this is one of; those of passes and of all FMA kernels concern any.
bool concerns(std::string_view entry, const std::vector<ConvPlan>& plans) {
  const std::string_view table = entry.substr(0, entry.find('.'));
  return table == "fma" || std::any_of(plans.begin(), plans.end(),
                                       [&](const ConvPlan& plan) { return to_string(plan.family()) == table; });
}

}  // namespace

std::vector<std::vector<CostTerm>> cost_terms(const ConvSpec& spec, const Target& target, std::size_t limit) {
  const std::vector<ConvPlan> plans = enumerate_plans(spec, target, limit);
  std::vector<std::vector<CostTerm>> terms(plans.size());
  Costs costs = costs_of(target);
  const std::vector<std::int64_t> now = candidate_costs(spec, target, costs);
  if (now.empty()) return terms;
  const std::vector<std::size_t> order = cheapest_first(now);
  for (const CostEntry& entry : entries_of(costs)) {
    if (*entry.value == 0 || !concerns(entry.name, plans)) continue;
    const std::int64_t value = *entry.value, step = std::max<std::int64_t>(1, value / 32);
    *entry.value = value + step;
    const std::vector<std::int64_t> more = candidate_costs(spec, target, costs);
    *entry.value = value;
    for (std::size_t i = 0; i < plans.size(); ++i)
      if (const std::int64_t difference = more[order[i]] - now[order[i]]; difference != 0)
        terms[i].push_back(
            {entry.name, static_cast<double>(difference) * static_cast<double>(value) / static_cast<double>(step)});
  }
  return terms;
}

}  // namespace jitconv::codegen
