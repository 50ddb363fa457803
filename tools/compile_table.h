// What can be said of convolutions without a GPU: they compile, with these registers, spills and sizes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/measure.h"
#include "tools/table.h"

namespace jitconv::tools {

/// Bytes of spill stores and loads per thread, summed over the kernels of a ptxas log; none if the log does not say.
std::optional<std::int64_t> spill_bytes(std::string_view ptxas_log);

struct CompileRow {
  NamedSpec named;
  std::optional<Compiled> compiled;
  ExitCode exit = kOk;
  std::string note;  ///< why it failed
};

CompileRow compile_row(const NamedSpec& named, const Target& target, bool cold);

/// The table for these convolutions, what it says of one, and what stands below it.
RowFormat compile_table(const std::vector<NamedSpec>& chosen);
std::vector<std::string> compile_cells(const CompileRow& row);
std::string compile_notes(const std::vector<CompileRow>& rows);

}  // namespace jitconv::tools
