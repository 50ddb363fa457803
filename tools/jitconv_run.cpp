// jitconv-run: compiles convolutions, runs them on random data, checks them against the reference in double. On a GPU
// it times them; without one it executes the generated code on the CPU and checks that it keeps CUDA's rules.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "jitconv/kernel.h"
#include "tools/compile_table.h"
#include "tools/host_report.h"
#include "tools/host_run.h"
#include "tools/measure.h"
#include "tools/report.h"
#include "tools/run_options.h"
#include "tools/run_output.h"
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
    write_error(fmt::format("jitconv-run: no GPU: {}\n", error.what()));
    return nullptr;
  }
}

/// Settings for a run with one row per convolution.
RunOutput::Settings output_settings(const RunOptions& options, OutputFile* json, json::Object head) {
  RunOutput::Settings settings;
  settings.program = "jitconv-run";
  settings.text = options.json != "-";
  settings.json = json;
  settings.head = std::move(head);
  settings.total = options.chosen.size();
  settings.quiet = options.quiet;
  return settings;
}

template <typename Row>
int exit_of(const std::vector<Row>& rows) {
  const auto bad = std::find_if(rows.begin(), rows.end(), [](const Row& row) { return row.exit != kOk; });
  return bad == rows.end() ? kOk : bad->exit;
}

int compile_all(const RunOptions& options, OutputFile* json) {
  const Target target = options.target.value_or(parse_target(kDefaultArch));
  write_error(fmt::format("jitconv-run: compiling for {}, running nothing\n", target.arch()));
  const RowFormat table = compile_table(options.chosen);
  RunOutput output(output_settings(options, json, compile_head(target)));
  output.print(table.heading());
  std::vector<CompileRow> rows;
  for (const NamedSpec& named : options.chosen) {
    output.begin(named.name);
    const CompileRow& row = rows.emplace_back(compile_row(named, target, options.measure.cold));
    output.add(table.line(compile_cells(row)), compile_row_json(row), compile_notes(rows));
  }
  output.end();
  return exit_of(rows);
}

int run_on_gpu(const RunOptions& options, Device& device, OutputFile* json) {
  const DeviceProperties& properties = device.properties();
  const Ceilings ceilings = ceilings_of(properties);
  const RowFormat table = measurement_table(options.chosen);
  RunOutput output(output_settings(options, json, measurements_head(properties, ceilings, options.measure)));
  output.print(fmt::format("{} ({}), {}, {} data, median of {} launches\nroofline: {}\n", properties.name,
                           properties.target.arch(), properties.driver, check::to_string(options.measure.kind),
                           options.measure.repeat, ceilings.origin) +
               "L2: flushed before each launch, or exceeded several times by the tensors\n\n" + table.heading());
  std::vector<Measurement> rows;
  for (const NamedSpec& named : options.chosen) {
    output.begin(named.name);
    const Measurement& row = rows.emplace_back(measure(device, named, options.measure, ceilings));
    output.add(table.line(measurement_cells(row)), measurement_json(row), measurement_notes(rows));
  }
  output.end();
  return exit_of(rows);
}

int tune_all(const RunOptions& options, Device& device, OutputFile* json) {
  const json::Object head{{"device", device.properties().name}, {"arch", device.properties().target.arch()}};
  RunOutput::Settings settings = output_settings(options, json, head);
  settings.rows = "tuned";
  RunOutput output(std::move(settings));
  bool wrong = false;
  for (const NamedSpec& named : options.chosen) {
    const TuneResult result =
        tune(device, named, options.measure, *options.tune, [&](const std::string& text) { output.begin(text); });
    wrong = wrong || result.any_wrong;
    output.add(tune_text(result) + "\n", tune_json(result));
  }
  output.end();
  return wrong ? kCheckFailed : kOk;
}

int run_on_host(const RunOptions& options, OutputFile* json) {
  HostDevice device(Target::host(options.target.value_or(parse_target(kDefaultArch))));
  const RowFormat table = host_table(options.chosen, options.host);
  RunOutput output(output_settings(options, json, host_head(device.properties(), options.host)));
  output.print(host_heading(device.properties(), options.host) + table.heading());
  const Stopwatch watch;
  std::vector<HostMeasurement> rows;
  run_on_host(
      device, options.chosen, options.host, [&](const std::string& name) { output.begin(name); },
      [&](HostMeasurement one) {
        const HostMeasurement& row = rows.emplace_back(std::move(one));
        output.add(table.line(host_cells(row)), host_row_json(row, options.host),
                   host_closing(rows, options.host, watch.ms()));
      });
  output.end();
  return exit_of(rows);
}

int run(const RunOptions& options) {
  std::optional<OutputFile> json_file;
  if (!options.json.empty()) json_file.emplace(options.json);
  OutputFile* json = json_file ? &*json_file : nullptr;
  if (options.compile_only) return compile_all(options, json);
  if (options.device == DeviceChoice::host) return run_on_host(options, json);
  const std::unique_ptr<Device> gpu = find_gpu();
  if (gpu == nullptr) {
    if (options.device == DeviceChoice::gpu || options.require_device || options.tune) return kNoDevice;
    if (!options.gpu_only.empty())
      write_error(fmt::format("jitconv-run: on the host, {} mean{} nothing\n", fmt::join(options.gpu_only, " and "),
                              options.gpu_only.size() == 1 ? "s" : ""));
    return run_on_host(options, json);
  }
  if (!options.host_only.empty())
    throw UsageError(fmt::format("{} goes with --device=host; here is a GPU", options.host_only.front()));
  if (options.target && options.target->arch() != gpu->properties().target.arch()) {
    throw UsageError(fmt::format("--arch: the device here is {}; use --compile-only or --device=host for another one",
                                 gpu->properties().target.arch()));
  }
  return options.tune ? tune_all(options, *gpu, json) : run_on_gpu(options, *gpu, json);
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
