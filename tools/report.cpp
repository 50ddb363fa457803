// Text and JSON of jitconv-run.
#include "tools/report.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <cmath>
#include <ctime>

#include "runtime/compile.h"
#include "tools/build_info.h"
#include "tools/json.h"
#include "tools/table.h"

namespace jitconv::tools {
namespace {

std::string number(const std::optional<double>& value, const char* format) {
  return value ? fmt::format(fmt::runtime(format), *value) : "-";
}

/// JSON has no infinities and no NaN.
json::Value finite(double value) { return std::isfinite(value) ? json::Value(value) : json::Value(nullptr); }

json::Value optional_value(const std::optional<double>& value) { return value ? finite(*value) : json::Value(nullptr); }

json::Object compiled_json(const Compiled& compiled) {
  json::Array entries;
  const auto& source = runtime::source_of(compiled.kernel);
  const std::vector<Resources> resources = compiled.kernel.resources();
  for (std::size_t i = 0; i < resources.size(); ++i) {
    const auto& entry = source.entries[i];
    entries.push_back(json::Object{{"name", entry.name},
                                   {"grid", json::Array{entry.grid[0], entry.grid[1], entry.grid[2]}},
                                   {"threads", resources[i].threads},
                                   {"registers", resources[i].registers},
                                   {"local_bytes", resources[i].local_bytes},
                                   {"shared_bytes", resources[i].shared_bytes}});
  }
  const auto spills = spill_bytes(compiled.kernel.compile_log());
  return json::Object{{"family", std::string(codegen::to_string(compiled.plan.family()))},
                      {"kernels", std::move(entries)},
                      {"spill_bytes", spills ? json::Value(*spills) : json::Value(nullptr)},
                      {"cubin_bytes", static_cast<std::int64_t>(compiled.kernel.image().size())},
                      {"key", compiled.kernel.cache_key()},
                      {"cold_ms", optional_value(compiled.cold_ms)},
                      {"warm_ms", optional_value(compiled.warm_ms)}};
}

}  // namespace

std::string outcome_text(Outcome outcome) {
  switch (outcome) {
    case Outcome::ok:
      return "ok";
    case Outcome::wrong:
      return "WRONG";
    case Outcome::skipped:
      return "skipped";
    case Outcome::failed:
      return "failed";
  }
  return "";
}

std::string now_text() { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))); }

json::Object check_json(const OutputCheck& check) {
  const auto& comparison = check.comparison;
  return json::Object{{"compared", comparison.compared},
                      {"every_output", check.every_output},
                      {"exact", comparison.exact},
                      {"wrong", comparison.wrong},
                      {"worst_error", finite(comparison.worst_error)},
                      {"worst_error_over_bound", finite(comparison.worst_ratio)},
                      {"above_likely_error", comparison.unlikely},
                      {"unwritten", check.unwritten},
                      {"guard_bytes_hit", check.guards_hit}};
}

RowFormat measurement_table(const std::vector<NamedSpec>& chosen) {
  using enum Align;
  return RowFormat({{"config", left, widest_name(chosen)},
                    {"family", left, 9},
                    {"result", left, 7},
                    {"error", right, 8},
                    {"of bound", right},
                    {"ms", right, 9},
                    {"TFLOP/s", right},
                    {"GB/s", right, 5},
                    {"% of roofline", right},
                    {"L2", left, 8},
                    {"cold ms", right},
                    {"warm ms", right},
                    {"load ms", right}});
}

std::vector<std::string> measurement_cells(const Measurement& row) {
  const std::string family = row.compiled ? std::string(codegen::to_string(row.compiled->plan.family())) : "-";
  std::vector<std::string> cells = {row.named.name, family, outcome_text(row.outcome)};
  std::optional<double> error, ratio, ms, tflops, gbytes, share;
  if (row.check) {
    error = row.check->comparison.worst_error;
    ratio = row.check->comparison.worst_ratio;
  }
  std::string l2 = "-";
  if (row.timing && row.timing->median() > 0) {
    ms = row.timing->median();
    tflops = row.work.flop / *ms * 1e-9;
    gbytes = row.work.bytes / *ms * 1e-6;
    share = 100 * row.floor_ms / *ms;
    l2 = row.timing->l2_flushed ? "flushed" : "exceeded";
  }
  const std::optional<double> cold = row.compiled ? row.compiled->cold_ms : std::nullopt;
  const std::optional<double> warm = row.compiled ? row.compiled->warm_ms : std::nullopt;
  for (const std::string& cell : {number(error, "{:.2e}"), number(ratio, "{:.3f}"), number(ms, "{:.4f}"),
                                  number(tflops, "{:.2f}"), number(gbytes, "{:.0f}"), number(share, "{:.1f}"), l2,
                                  number(cold, "{:.0f}"), number(warm, "{:.2f}"), number(row.load_ms, "{:.2f}")}) {
    cells.push_back(cell);
  }
  return cells;
}

std::string measurement_notes(const std::vector<Measurement>& rows) {
  std::string notes;
  for (const Measurement& row : rows)
    if (!row.note.empty()) notes += fmt::format("{}: {}\n", row.named.name, row.note);
  return notes;
}

json::Object measurements_head(const DeviceProperties& device, const Ceilings& ceilings,
                               const MeasureOptions& options) {
  return json::Object{{"jitconv", version()},
                      {"commit", kBuildCommit},
                      {"date", now_text()},
                      {"device", json::Object{{"name", device.name},
                                              {"arch", device.target.arch()},
                                              {"driver", device.driver},
                                              {"multiprocessors", device.target.sm_count},
                                              {"clock_hz", device.clock_hz}}},
                      {"ceilings", json::Object{{"bytes_per_s", ceilings.bytes_per_s},
                                                {"fma_flop_per_s", ceilings.fma_flop_per_s},
                                                {"tf32_flop_per_s", ceilings.tf32_flop_per_s},
                                                {"half_flop_per_s", ceilings.half_flop_per_s},
                                                {"origin", ceilings.origin}}},
                      {"data", std::string(check::to_string(options.kind))},
                      {"warmup", options.warmup},
                      {"repeat", options.repeat}};
}

json::Object measurement_json(const Measurement& row) {
  json::Object object{{"config", row.named.name},
                      {"spec", to_string(row.named.spec)},
                      {"outcome", outcome_text(row.outcome)},
                      {"note", row.note},
                      {"flop", row.work.flop},
                      {"bytes", row.work.bytes},
                      {"floor_ms", finite(row.floor_ms)}};
  if (row.compiled) object["compiled"] = compiled_json(*row.compiled);
  object["load_ms"] = optional_value(row.load_ms);
  if (row.check) object["check"] = check_json(*row.check);
  if (row.timing) {
    json::Array ms;
    for (const double one : row.timing->ms) ms.push_back(one);
    object["ms_median"] = row.timing->median();
    object["ms"] = ms;
    object["l2"] = row.timing->l2_flushed ? "flushed" : "exceeded";
  }
  return object;
}

json::Object compile_head(const Target& target) {
  return json::Object{{"jitconv", version()},
                      {"commit", kBuildCommit},
                      {"date", now_text()},
                      {"device", nullptr},
                      {"arch", target.arch()}};
}

json::Object compile_row_json(const CompileRow& row) {
  json::Object object{{"config", row.named.name},
                      {"spec", to_string(row.named.spec)},
                      {"outcome", row.compiled ? "compiled" : "failed"},
                      {"note", row.note}};
  if (row.compiled) object["compiled"] = compiled_json(*row.compiled);
  return object;
}

}  // namespace jitconv::tools
