// Two things at a time: one core executes a kernel, another prepares the next.
#include "tools/host_run.h"

#include <fmt/format.h>

#include <future>
#include <memory>
#include <numeric>

#include "runtime/compile.h"
#include "tools/stopwatch.h"

namespace jitconv::tools {
namespace {

/// Multiplications of the reference: enough for every output of what is reduced.
constexpr std::int64_t kCheckBudget = 2'000'000'000;
/// Documented configurations below this many multiply-adds are run as they are.
constexpr std::int64_t kSmall = 6'000'000;

/// A convolution that is ready to run, or the row that says why it is not.
struct Prepared {
  HostMeasurement row;
  std::vector<std::unique_ptr<Problem>> problems;  ///< one per run
};

void fail(HostMeasurement& row, ExitCode exit, std::string note) {
  row.outcome = Outcome::failed;
  row.exit = exit;
  row.note = std::move(note);
}

void reduce_and_compile(HostMeasurement& row, const Target& target, const HostOptions& options) {
  row.reduction = reduce(row.named.spec, target, options.limits);
  CompileOptions compile_options;
  compile_options.counters = options.counters;
  const Stopwatch watch;
  row.kernel = runtime::compile_plan(row.reduction->plan, compile_options);
  if (!row.kernel->from_cache()) row.compile_ms = watch.ms();
}

Prepared prepare(HostDevice& device, const NamedSpec& named, const HostOptions& options) {
  Prepared result;
  HostMeasurement& row = result.row;
  row.named = named;
  try {
    reduce_and_compile(row, device.properties().target, options);
    const ConvSpec& spec = row.reduction->plan.spec;
    if (row.reduction->plan.family() == codegen::Family::none) {
      row.note = "no outputs: nothing to launch";
      return result;
    }
    if (const std::string lack = lack_of_memory(device, spec, row.kernel->workspace_bytes()); !lack.empty()) {
      fail(row, kCheckFailed, lack);
      return result;
    }
    for (const HostRunKind& kind : options.runs) {
      result.problems.push_back(std::make_unique<Problem>(device, spec, kind.data, options.seed));
      result.problems.back()->prepare_reference(kCheckBudget);
    }
  } catch (const Error& error) {
    fail(row, exit_code(error.code()), error.what());
  }
  return result;
}

HostRun run_once(HostDevice& device, const Kernel& kernel, Problem& problem, const HostRunKind& kind,
                 std::uint64_t seed) {
  host::Settings settings;
  settings.seed = seed;
  settings.landing = kind.landing;
  device.set_settings(settings);
  const LaunchArgs arguments = problem.arguments(kernel);
  problem.poison();
  HostRun run;
  run.kind = kind;
  const Stopwatch watch;
  const CpuStopwatch cpu;
  device.launch(kernel, arguments);
  run.cpu_ms = cpu.ms();
  run.ms = watch.ms();
  run.reports = device.take_reports();
  run.check = problem.check(kCheckBudget);
  return run;
}

void run(HostDevice& device, Prepared& prepared, const HostOptions& options) {
  HostMeasurement& row = prepared.row;
  if (prepared.problems.empty()) return;
  try {
    device.prepare(*row.kernel);
    for (std::size_t i = 0; i < options.runs.size(); ++i) {
      row.runs.push_back(run_once(device, *row.kernel, *prepared.problems[i], options.runs[i], options.seed + i));
      const HostRun& made = row.runs.back();
      if (made.passed()) continue;
      row.outcome = Outcome::wrong;
      row.exit = kCheckFailed;
      if (!made.check.passed() && row.note.empty()) row.note = made.check.text();
    }
  } catch (const Error& error) {
    fail(row, exit_code(error.code()), error.what());
  }
}

}  // namespace

WorkLimits host_work_limits(bool documented, bool full_size, std::int64_t most) {
  if (full_size) return {INT64_MAX, INT64_MAX};
  return {documented ? std::min(kSmall, most) : most, most};
}

std::size_t HostRun::findings() const {
  return std::accumulate(reports.begin(), reports.end(), std::size_t{0},
                         [](std::size_t sum, const host::Report& report) { return sum + report.findings.size(); });
}

std::size_t HostMeasurement::findings() const {
  return std::accumulate(runs.begin(), runs.end(), std::size_t{0},
                         [](std::size_t sum, const HostRun& one) { return sum + one.findings(); });
}

double HostMeasurement::rate() const {
  double ms = 0;
  for (const HostRun& one : runs) ms += one.cpu_ms;
  if (ms <= 0) return 0;
  return static_cast<double>(multiply_adds(reduction->plan.spec)) * static_cast<double>(runs.size()) / ms * 1e3;
}

void run_on_host(HostDevice& device, const std::vector<NamedSpec>& chosen, const HostOptions& options,
                 const std::function<void(const std::string&)>& begins,
                 const std::function<void(HostMeasurement)>& ended) {
  const auto start = [&](std::size_t i) {
    return std::async(std::launch::async, [&, i] { return prepare(device, chosen[i], options); });
  };
  std::future<Prepared> next;
  if (!chosen.empty()) next = start(0);
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    begins(chosen[i].name);
    Prepared prepared = next.get();
    if (i + 1 < chosen.size()) next = start(i + 1);
    run(device, prepared, options);
    ended(std::move(prepared.row));
  }
}

}  // namespace jitconv::tools
