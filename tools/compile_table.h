// What can be said of convolutions without a GPU: they compile, with these registers, spills and sizes.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/measure.h"

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

std::string compile_table_text(const std::vector<CompileRow>& rows);

}  // namespace jitconv::tools
