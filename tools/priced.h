// Candidates of the cost model as JSON, with the terms of their modelled times: what bench/fit_costs.py reads.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "codegen/cost_terms.h"
#include "codegen/plan.h"
#include "tools/json.h"

namespace jitconv::tools {

double modelled_ms(const codegen::ConvPlan& plan);

/// An object of the terms in milliseconds, by the names of entries.
json::Object terms_json(const std::vector<codegen::CostTerm>& terms);

/// The candidates of a convolution, cheapest first, at most `limit`: family, modelled time, plan in one line, terms.
json::Object candidates_json(const ConvSpec& spec, const Target& target, std::size_t limit);

}  // namespace jitconv::tools
