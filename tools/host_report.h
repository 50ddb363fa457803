// What jitconv-run prints of convolutions it ran on the CPU: a table, the findings, the counters, and all of it as
// JSON. No roofline: the time a CPU takes says nothing about a GPU.
#pragma once

#include <string>
#include <vector>

#include "tools/host_run.h"
#include "tools/json.h"
#include "tools/table.h"

namespace jitconv::tools {

/// Who executes what and how the runs differ: what stands above the table.
std::string host_heading(const DeviceProperties& device, const HostOptions& options);
/// The table for these convolutions, and what it says of one that ran.
RowFormat host_table(const std::vector<NamedSpec>& chosen, const HostOptions& options);
std::vector<std::string> host_cells(const HostMeasurement& row);
/// What stands below the table: notes, findings, a sum and, if they were counted, the counters.
std::string host_closing(const std::vector<HostMeasurement>& rows, const HostOptions& options, double ms);

/// Per kernel of the last run: requests, sectors, wavefronts, conflicts, FMAs, bytes.
std::string host_counters_text(const std::vector<HostMeasurement>& rows);

/// What jitconv-run --json says of the run as a whole, and of one convolution.
json::Object host_head(const DeviceProperties& device, const HostOptions& options);
json::Object host_row_json(const HostMeasurement& row, const HostOptions& options);

}  // namespace jitconv::tools
