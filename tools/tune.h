// Measures the plans that the cost model has prices for, to see how good its choice is.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tools/json.h"
#include "tools/measure.h"

namespace jitconv::tools {

struct Candidate {
  codegen::ConvPlan plan;
  std::optional<double> ms;  ///< median; none if it failed
  std::string note;          ///< why it failed
};

struct TuneResult {
  NamedSpec named;
  std::vector<Candidate> candidates;  ///< the model's choice, then the others in its order
  std::size_t best = 0;               ///< index; only meaningful if one was measured
  bool any_measured() const;
  /// Measured time of the model's choice over that of the best; 0 if either is missing.
  double ratio() const;
  bool any_wrong = false;
  std::string note;  ///< why nothing was measured
};

/// `progress` is told which candidate is being measured.
TuneResult tune(Device& device, const NamedSpec& named, const MeasureOptions& options, std::size_t limit,
                const std::function<void(const std::string&)>& progress);

/// For texts of `name: value` lines: one line per text with those of its lines that not all texts share, semicolons
/// between. What all share says nothing about why one is faster.
std::vector<std::string> distinguishing_lines(const std::vector<std::string>& texts);

std::string tune_text(const TuneResult& result);
json::Object tune_json(const TuneResult& result);

}  // namespace jitconv::tools
