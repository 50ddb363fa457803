// The rows of measurements and of compilations as text and as JSON.
#pragma once

#include <string>
#include <vector>

#include "tools/compile_table.h"
#include "tools/json.h"
#include "tools/measure.h"
#include "tools/table.h"

namespace jitconv::tools {

/// The table for these convolutions, and what it says of one that was measured.
RowFormat measurement_table(const std::vector<NamedSpec>& chosen);
std::vector<std::string> measurement_cells(const Measurement& row);
/// What stands below the table: why rows are not ok.
std::string measurement_notes(const std::vector<Measurement>& rows);

/// What jitconv-run --json says of a run on a GPU besides its rows: versions, device, ceilings, settings.
json::Object measurements_head(const DeviceProperties& device, const Ceilings& ceilings, const MeasureOptions& options);
/// One convolution. Times of every launch are kept, so that spread can be judged later.
json::Object measurement_json(const Measurement& row);
/// The same of --compile-only.
json::Object compile_head(const Target& target);
json::Object compile_row_json(const CompileRow& row);

// What reports of every device have in common.

/// "ok", "WRONG", "skipped", "failed".
std::string outcome_text(Outcome outcome);
json::Object check_json(const OutputCheck& check);
/// The time, in UTC, as ISO 8601 has it.
std::string now_text();

}  // namespace jitconv::tools
