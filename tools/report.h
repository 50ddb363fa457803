// The table of measurements, and the same as JSON.
#pragma once

#include <string>
#include <vector>

#include "tools/compile_table.h"
#include "tools/json.h"
#include "tools/measure.h"

namespace jitconv::tools {

std::string measurement_table_text(const std::vector<Measurement>& rows);

/// What jitconv-run --json writes: versions, device, ceilings, settings and one object per convolution. Times of every
/// launch are kept, so that spread can be judged later.
std::string measurements_json(const std::vector<Measurement>& rows, const DeviceProperties& device,
                              const Ceilings& ceilings, const MeasureOptions& options);
std::string compile_rows_json(const std::vector<CompileRow>& rows, const Target& target);

// What reports of every device have in common.

/// "ok", "WRONG", "skipped", "failed".
std::string outcome_text(Outcome outcome);
json::Object check_json(const OutputCheck& check);
/// The time, in UTC, as ISO 8601 has it.
std::string now_text();

}  // namespace jitconv::tools
