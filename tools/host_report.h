// What jitconv-run prints of convolutions it ran on the CPU: a table, the findings, the counters, and all of it as
// JSON. No roofline: the time a CPU takes says nothing about a GPU.
#pragma once

#include <string>
#include <vector>

#include "tools/host_run.h"

namespace jitconv::tools {

/// Who executes what and how the runs differ, the table, notes and findings, and a sum.
std::string host_table_text(const std::vector<HostMeasurement>& rows, const DeviceProperties& device,
                            const HostOptions& options, double ms);

/// Per kernel of the last run: requests, sectors, wavefronts, conflicts, FMAs, bytes.
std::string host_counters_text(const std::vector<HostMeasurement>& rows);

std::string host_json(const std::vector<HostMeasurement>& rows, const DeviceProperties& device,
                      const HostOptions& options);

}  // namespace jitconv::tools
