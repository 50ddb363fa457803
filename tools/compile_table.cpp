// Compile results as rows and as a table.
#include "tools/compile_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "runtime/compile.h"
#include "tools/table.h"

namespace jitconv::tools {
namespace {

/// The number that ends right before `at`, skipping the word " bytes".
std::optional<std::int64_t> number_before(std::string_view text, std::size_t at) {
  constexpr std::string_view kUnit = " bytes ";
  if (at < kUnit.size() || text.substr(at - kUnit.size(), kUnit.size()) != kUnit) return std::nullopt;
  const std::size_t end = at - kUnit.size();
  std::size_t begin = end;
  while (begin > 0 && text[begin - 1] >= '0' && text[begin - 1] <= '9') --begin;
  std::int64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data() + begin, text.data() + end, value);
  if (error != std::errc{} || stop != text.data() + end) return std::nullopt;
  return value;
}

std::vector<std::string> cells_of(const std::string& name, const Compiled& compiled) {
  int registers = 0, threads = 0;
  std::int64_t shared = 0, local = 0;
  for (const Resources& one : compiled.kernel.resources()) {
    registers = std::max(registers, one.registers);
    threads = std::max(threads, one.threads);
    shared = std::max(shared, one.shared_bytes);
    local = std::max(local, one.local_bytes);
  }
  std::uint64_t blocks = 0;
  for (const auto& entry : runtime::source_of(compiled.kernel).entries) {
    blocks += std::uint64_t{entry.grid[0]} * entry.grid[1] * entry.grid[2];
  }
  const std::optional<std::int64_t> spills = spill_bytes(compiled.kernel.compile_log());
  return {name,
          std::string(codegen::to_string(compiled.plan.family())),
          std::to_string(registers),
          spills ? std::to_string(*spills) : fmt::format("?, local {}", local),
          std::to_string(shared),
          std::to_string(threads),
          std::to_string(blocks),
          fmt::format("{:.1f}", static_cast<double>(compiled.kernel.image().size()) / 1024),
          compiled.cold_ms ? fmt::format("{:.0f}", *compiled.cold_ms) : "cached"};
}

}  // namespace

std::optional<std::int64_t> spill_bytes(std::string_view ptxas_log) {
  std::optional<std::int64_t> total;
  for (const std::string_view what : {std::string_view("spill stores"), std::string_view("spill loads")}) {
    for (std::size_t at = ptxas_log.find(what); at != std::string_view::npos; at = ptxas_log.find(what, at + 1)) {
      if (const auto bytes = number_before(ptxas_log, at)) total = total.value_or(0) + *bytes;
    }
  }
  return total;
}

CompileRow compile_row(const NamedSpec& named, const Target& target, bool cold) {
  CompileRow row;
  row.named = named;
  try {
    row.compiled = compile_timed(named.spec, target, cold);
  } catch (const Error& error) {
    row.exit = exit_code(error.code());
    row.note = error.what();
  }
  return row;
}

RowFormat compile_table(const std::vector<NamedSpec>& chosen) {
  using enum Align;
  return RowFormat({{"config", left, widest_name(chosen)},
                    {"family", left, 9},
                    {"registers", right},
                    {"spill bytes", right},
                    {"shared bytes", right},
                    {"threads", right},
                    {"blocks", right, 8},
                    {"cubin KB", right},
                    {"compile ms", right}});
}

std::vector<std::string> compile_cells(const CompileRow& row) {
  if (!row.compiled) return {row.named.name, "failed", "", "", "", "", "", "", ""};
  return cells_of(row.named.name, *row.compiled);
}

std::string compile_notes(const std::vector<CompileRow>& rows) {
  std::vector<double> cold;
  std::size_t compiled = 0;
  std::string text;
  for (const CompileRow& row : rows) {
    if (row.compiled) {
      ++compiled;
      if (row.compiled->cold_ms) cold.push_back(*row.compiled->cold_ms);
    } else {
      text += fmt::format("{}: {}\n", row.named.name, row.note);
    }
  }
  text += fmt::format("{} of {} compiled", compiled, rows.size());
  if (!cold.empty()) {
    std::sort(cold.begin(), cold.end());
    text += fmt::format("; NVRTC included, median {:.0f} ms, longest {:.0f} ms", cold[cold.size() / 2], cold.back());
  }
  return text + "\n";
}

}  // namespace jitconv::tools
