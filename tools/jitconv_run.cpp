// jitconv-run: compiles convolutions, runs them on random data, checks them against the reference in double. On a GPU
// it times them; without one it executes the generated code on the CPU and checks that it keeps CUDA's rules.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "jitconv/kernel.h"
#include "tools/compile_table.h"
#include "tools/host_report.h"
#include "tools/host_run.h"
#include "tools/measure.h"
#include "tools/report.h"
#include "tools/run_options.h"
#include "tools/stopwatch.h"
#include "tools/tool.h"
#include "tools/tune.h"

namespace jitconv::tools {
namespace {

/// Null, with the reason on stderr, if there is no usable GPU.
std::unique_ptr<Device> find_gpu() {
  try {
    return open_cuda_device();
  } catch (const CudaError& error) {
    if (error.code() != ErrorCode::no_driver && error.code() != ErrorCode::no_device) throw;
    fmt::print(stderr, "jitconv-run: no GPU: {}\n", error.what());
    return nullptr;
  }
}

void write_json(const RunOptions& options, const std::string& text) {
  if (!options.json.empty()) write_output(options.json, text);
}

template <typename Row>
int exit_of(const std::vector<Row>& rows) {
  const auto bad = std::find_if(rows.begin(), rows.end(), [](const Row& row) { return row.exit != kOk; });
  return bad == rows.end() ? kOk : bad->exit;
}

int compile_all(const RunOptions& options) {
  const Target target = options.target.value_or(parse_target(kDefaultArch));
  fmt::print(stderr, "jitconv-run: compiling for {}, running nothing\n", target.arch());
  std::vector<CompileRow> rows;
  Progress progress(options.quiet);
  for (const NamedSpec& named : options.chosen) {
    progress.show(fmt::format("[{}/{}] {}", rows.size() + 1, options.chosen.size(), named.name));
    rows.push_back(compile_row(named, target, options.measure.cold));
  }
  progress.clear();
  if (options.json != "-") write_output("-", compile_table_text(rows));
  write_json(options, compile_rows_json(rows, target));
  return exit_of(rows);
}

int run_on_gpu(const RunOptions& options, Device& device) {
  const Ceilings ceilings = ceilings_of(device.properties());
  std::vector<Measurement> rows;
  Progress progress(options.quiet);
  for (const NamedSpec& named : options.chosen) {
    progress.show(fmt::format("[{}/{}] {}", rows.size() + 1, options.chosen.size(), named.name));
    rows.push_back(measure(device, named, options.measure, ceilings));
  }
  progress.clear();
  if (options.json != "-") {
    const DeviceProperties& properties = device.properties();
    std::string text =
        fmt::format("{} ({}), {}, {} data, median of {} launches\n", properties.name, properties.target.arch(),
                    properties.driver, check::to_string(options.measure.kind), options.measure.repeat);
    text += fmt::format("roofline: {}\n", ceilings.origin);
    text += "L2: flushed before each launch, or exceeded several times by the tensors\n\n";
    write_output("-", text + measurement_table_text(rows));
  }
  write_json(options, measurements_json(rows, device.properties(), ceilings, options.measure));
  return exit_of(rows);
}

int tune_all(const RunOptions& options, Device& device) {
  std::vector<TuneResult> results;
  Progress progress(options.quiet);
  for (const NamedSpec& named : options.chosen) {
    results.push_back(
        tune(device, named, options.measure, *options.tune, [&](const std::string& text) { progress.show(text); }));
    progress.clear();
    if (options.json != "-") write_output("-", tune_text(results.back()) + "\n");
  }
  write_json(options, tune_json(results, device.properties()));
  const bool wrong = std::any_of(results.begin(), results.end(), [](const TuneResult& one) { return one.any_wrong; });
  return wrong ? kCheckFailed : kOk;
}

int run_on_host(const RunOptions& options) {
  HostDevice device(Target::host(options.target.value_or(parse_target(kDefaultArch))));
  Progress progress(options.quiet);
  const Stopwatch watch;
  const std::vector<HostMeasurement> rows =
      run_on_host(device, options.chosen, options.host, [&](const std::string& text) { progress.show(text); });
  const double ms = watch.ms();
  progress.clear();
  if (options.json != "-") {
    std::string text = host_table_text(rows, device.properties(), options.host, ms);
    if (options.host.counters) text += "\n" + host_counters_text(rows);
    write_output("-", text);
  }
  write_json(options, host_json(rows, device.properties(), options.host));
  return exit_of(rows);
}

int run(const RunOptions& options) {
  if (options.compile_only) return compile_all(options);
  if (options.device == DeviceChoice::host) return run_on_host(options);
  const std::unique_ptr<Device> gpu = find_gpu();
  if (gpu == nullptr) {
    if (options.device == DeviceChoice::gpu || options.require_device || options.tune) return kNoDevice;
    if (!options.gpu_only.empty())
      fmt::print(stderr, "jitconv-run: on the host, {} mean{} nothing\n", fmt::join(options.gpu_only, " and "),
                 options.gpu_only.size() == 1 ? "s" : "");
    return run_on_host(options);
  }
  if (!options.host_only.empty())
    throw UsageError(fmt::format("{} goes with --device=host; here is a GPU", options.host_only.front()));
  if (options.target && options.target->arch() != gpu->properties().target.arch()) {
    throw UsageError(fmt::format("--arch: the device here is {}; use --compile-only or --device=host for another one",
                                 gpu->properties().target.arch()));
  }
  return options.tune ? tune_all(options, *gpu) : run_on_gpu(options, *gpu);
}

int parse_and_run(int argc, const char* const* argv) {
  const RunOptions options = parse_run_options(argc, argv);
  if (options.list) {
    write_output("-", SpecOptions::list_text());
    return kOk;
  }
  return run(options);
}

}  // namespace
}  // namespace jitconv::tools

int main(int argc, char** argv) {
  return jitconv::tools::run_tool("jitconv-run", [&] { return jitconv::tools::parse_and_run(argc, argv); });
}
