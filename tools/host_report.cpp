// Text and JSON of host execution.
#include "tools/host_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "host/counters.h"
#include "host/finding.h"
#include "runtime/compile.h"
#include "tools/build_info.h"
#include "tools/json.h"
#include "tools/report.h"
#include "tools/table.h"

namespace jitconv::tools {
namespace {

std::string_view name_of(host::Landing landing) {
  switch (landing) {
    case host::Landing::early:
      return "early";
    case host::Landing::late:
      return "late";
    case host::Landing::random:
      return "random";
  }
  return "";
}

std::string name_of(const HostRunKind& kind) {
  return fmt::format("{}, {}", check::to_string(kind.data), name_of(kind.landing));
}

/// The extents that reduction changes.
std::string extents(const ConvSpec& spec) { return fmt::format("{},{},{}", spec.input.n, spec.input.h, spec.input.w); }

std::string result_of(const HostMeasurement& row, std::size_t run) {
  return run >= row.runs.size() ? "-" : row.runs[run].check.passed() ? "ok" : "WRONG";
}

/// The last run on real data, whose error has a meaning; null if there is none.
const check::Comparison* real_data(const HostMeasurement& row) {
  for (auto run = row.runs.rbegin(); run != row.runs.rend(); ++run)
    if (run->kind.data != check::DataKind::exact) return &run->check.comparison;
  return nullptr;
}

/// Notes that several rows share, once: "A, A_bias: text".
class Notes {
 public:
  void add(const std::string& name, const std::string& text) {
    if (text.empty()) return;
    const auto same = std::find_if(lines_.begin(), lines_.end(), [&](const auto& line) { return line.second == text; });
    if (same != lines_.end()) {
      same->first += ", " + name;
    } else {
      lines_.emplace_back(name, text);
    }
  }
  std::string text() const {
    std::string all;
    for (const auto& [names, note] : lines_) all += fmt::format("{}: {}\n", names, note);
    return all;
  }

 private:
  std::vector<std::pair<std::string, std::string>> lines_;
};

double percent(double part) { return 100 * part; }

double per(std::uint64_t amount, std::uint64_t requests) {
  return requests == 0 ? 0 : static_cast<double>(amount) / static_cast<double>(requests);
}

/// The kernels of the last run, with the name each has in a table.
std::vector<std::pair<std::string, const host::Counters*>> counted(const HostMeasurement& row) {
  std::vector<std::pair<std::string, const host::Counters*>> all;
  if (row.runs.empty()) return all;
  const std::vector<host::Report>& reports = row.runs.back().reports;
  for (std::size_t i = 0; i < reports.size(); ++i)
    all.emplace_back(reports.size() == 1 ? row.named.name : fmt::format("{} [{}]", row.named.name, i),
                     &reports[i].counters);
  return all;
}

json::Object counters_json(const host::Counters& counters) {
  const auto global = [](const host::GlobalCounters& one) {
    return json::Object{
        {"requests", one.requests}, {"sectors", one.sectors}, {"bytes", one.bytes}, {"efficiency", one.efficiency()}};
  };
  const auto shared = [](const host::SharedCounters& one) {
    return json::Object{{"requests", one.requests},
                        {"wavefronts", one.wavefronts},
                        {"conflicts", one.conflicts()},
                        {"bytes", one.bytes}};
  };
  return json::Object{{"global_loads", global(counters.global_loads)},
                      {"global_stores", global(counters.global_stores)},
                      {"shared_loads", shared(counters.shared_loads)},
                      {"shared_stores", shared(counters.shared_stores)},
                      {"fmas", counters.fmas}};
}

json::Object run_json(const HostRun& run, const HostMeasurement& row, const HostOptions& options) {
  json::Array findings, counters;
  for (const host::Report& report : run.reports) {
    for (const host::Finding& one : report.findings)
      findings.push_back(json::Object{{"rule", host::to_string(one.rule)},
                                      {"kernel", one.kernel},
                                      {"line", one.line},
                                      {"block", json::Array{one.block[0], one.block[1], one.block[2]}},
                                      {"thread", one.thread},
                                      {"address", one.address},
                                      {"text", one.text}});
    if (options.counters) counters.push_back(counters_json(report.counters));
  }
  json::Object object{{"data", std::string(check::to_string(run.kind.data))},
                      {"landing", std::string(name_of(run.kind.landing))},
                      {"ms", run.ms},
                      {"cpu_ms", run.cpu_ms},
                      {"multiply_adds", multiply_adds(row.reduction->plan.spec)},
                      {"check", check_json(run.check)},
                      {"findings", std::move(findings)}};
  if (options.counters) object["counters"] = counters;
  return object;
}

}  // namespace

std::string host_heading(const DeviceProperties& device, const HostOptions& options) {
  std::string text =
      fmt::format("host: {}, compiled by {}; the code for {}\n", device.name, device.driver, device.target.arch());
  text += fmt::format(
      "two runs of each, threads in random order (seed {}): {} data while copies land {}, {} data while they land {}\n",
      options.seed, check::to_string(options.runs[0].data), name_of(options.runs[0].landing),
      check::to_string(options.runs[1].data), name_of(options.runs[1].landing));
  if (options.limits.as_given != INT64_MAX)
    text += fmt::format(
        "N, H and W are reduced by whole tiles, to at most {} M multiply-adds if one tile has no more; everything "
        "else, the kernel's tiling included, is that of the full size\n",
        options.limits.most / 1'000'000);
  return text +
         "tiles: of the output along N (of depthwise: its planes), P and Q; of dw, splits of the pixels, then "
         "along K and C*R*S\n\n";
}

RowFormat host_table(const std::vector<NamedSpec>& chosen, const HostOptions& options) {
  using enum Align;
  std::size_t widest_extents = 0;
  for (const NamedSpec& named : chosen) widest_extents = std::max(widest_extents, extents(named.spec).size());
  return RowFormat({{"config", left, widest_name(chosen)},
                    {"N,H,W", left, widest_extents},
                    {"of", left, widest_extents},
                    {"family", left, 9},
                    {"tiles", left, 7},
                    {name_of(options.runs[0]), left},
                    {name_of(options.runs[1]), left},
                    {"error", right, 8},
                    {"of bound", right},
                    {"findings", right},
                    {"M MAC/s", right},
                    {"compile ms", right}});
}

std::vector<std::string> host_cells(const HostMeasurement& row) {
  const bool planned = row.reduction.has_value();
  const check::Comparison* real = real_data(row);
  const bool ran = !row.runs.empty();
  std::vector<std::string> cells = {row.named.name};
  cells.push_back(planned ? extents(row.reduction->plan.spec) : "-");
  cells.push_back(planned && row.reduction->reduced ? extents(row.named.spec) : "-");
  cells.push_back(planned ? std::string(codegen::to_string(row.reduction->plan.family())) : "-");
  cells.push_back(
      planned ? fmt::format("{}x{}x{}", row.reduction->tiles[0], row.reduction->tiles[1], row.reduction->tiles[2])
              : "-");
  for (std::size_t run = 0; run < 2; ++run)
    cells.push_back(row.outcome == Outcome::failed ? "failed" : result_of(row, run));
  cells.push_back(real != nullptr ? fmt::format("{:.2e}", real->worst_error) : "-");
  cells.push_back(real == nullptr              ? "-"
                  : real->worst_ratio < 1000.0 ? fmt::format("{:.3f}", real->worst_ratio)
                                               : fmt::format("{:.1e}", real->worst_ratio));
  cells.push_back(ran ? std::to_string(row.findings()) : "-");
  cells.push_back(ran ? fmt::format("{:.0f}", row.rate() * 1e-6) : "-");
  cells.push_back(row.compile_ms ? fmt::format("{:.0f}", *row.compile_ms) : row.kernel ? "cached" : "-");
  return cells;
}

std::string host_closing(const std::vector<HostMeasurement>& rows, const HostOptions& options, double ms) {
  Notes notes;
  std::string findings;
  std::size_t right_rows = 0, found = 0;
  for (const HostMeasurement& row : rows) {
    if (row.reduction) notes.add(row.named.name, row.reduction->note);
    notes.add(row.named.name, row.note);
    if (row.outcome == Outcome::ok) ++right_rows;
    found += row.findings();
    for (const HostRun& run : row.runs)
      for (const host::Report& report : run.reports)
        for (const host::Finding& one : report.findings)
          findings += fmt::format("{} ({}): {}\n", row.named.name, name_of(run.kind), host::to_string(one));
  }
  const std::string text = notes.text() + findings +
                           fmt::format("{} of {} ran on the host and are right, {} finding{}; {:.0f} s\n", right_rows,
                                       rows.size(), found, found == 1 ? "" : "s", ms * 1e-3);
  return options.counters ? text + "\n" + host_counters_text(rows) : text;
}

std::string host_counters_text(const std::vector<HostMeasurement>& rows) {
  using enum Align;
  Table table(
      {"config", "loads", "sectors/load", "of sectors %", "stores", "sectors/store", "of sectors %", "shared loads",
       "wavefronts", "conflicts", "shared stores", "wavefronts", "conflicts", "FMAs", "bytes loaded", "bytes stored"},
      {left, right, right, right, right, right, right, right, right, right, right, right, right, right, right, right});
  for (const HostMeasurement& row : rows) {
    for (const auto& [name, counters] : counted(row)) {
      std::vector<std::string> cells = {name};
      for (const host::GlobalCounters* one : {&counters->global_loads, &counters->global_stores}) {
        cells.push_back(std::to_string(one->requests));
        cells.push_back(fmt::format("{:.2f}", per(one->sectors, one->requests)));
        cells.push_back(fmt::format("{:.1f}", percent(one->efficiency())));
      }
      for (const host::SharedCounters* one : {&counters->shared_loads, &counters->shared_stores}) {
        cells.push_back(std::to_string(one->requests));
        cells.push_back(std::to_string(one->wavefronts));
        cells.push_back(std::to_string(one->conflicts()));
      }
      cells.push_back(std::to_string(counters->fmas));
      cells.push_back(std::to_string(counters->global_loads.bytes));
      cells.push_back(std::to_string(counters->global_stores.bytes));
      table.add(cells);
    }
  }
  return "counters, of the last run; requests are instructions of a warp, FMAs those of single threads\n\n" +
         table.text();
}

json::Object host_head(const DeviceProperties& device, const HostOptions& options) {
  return json::Object{
      {"jitconv", version()},
      {"commit", kBuildCommit},
      {"date", now_text()},
      {"device",
       json::Object{
           {"name", "host"}, {"cpu", device.name}, {"arch", device.target.arch()}, {"compiler", device.driver}}},
      {"seed", options.seed},
      {"work_limit", options.limits.most}};
}

json::Object host_row_json(const HostMeasurement& row, const HostOptions& options) {
  json::Object object{{"config", row.named.name},
                      {"spec", to_string(row.named.spec)},
                      {"outcome", outcome_text(row.outcome)},
                      {"note", row.note}};
  if (row.reduction) {
    const Reduction& reduction = *row.reduction;
    object["run_spec"] = to_string(reduction.plan.spec);
    object["reduced"] = reduction.reduced;
    object["reduction_note"] = reduction.note;
    object["family"] = std::string(codegen::to_string(reduction.plan.family()));
    object["tiles"] = json::Array{reduction.tiles[0], reduction.tiles[1], reduction.tiles[2]};
    object["executed_multiply_adds"] = reduction.multiply_adds;
  }
  if (row.kernel) object["key"] = row.kernel->cache_key();
  object["compile_ms"] = row.compile_ms ? json::Value(*row.compile_ms) : json::Value(nullptr);
  json::Array runs;
  for (const HostRun& run : row.runs) runs.push_back(run_json(run, row, options));
  object["runs"] = runs;
  return object;
}

}  // namespace jitconv::tools
