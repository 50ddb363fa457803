// jitconv-run: compiles convolutions, runs them on random data, checks them against the reference in double, times
// them. Without a GPU it compiles them and shows what that gave.
#include <fmt/format.h>
#include <llvm/Support/CommandLine.h>

#include "jitconv/kernel.h"
#include "tools/compile_table.h"
#include "tools/measure.h"
#include "tools/options.h"
#include "tools/report.h"
#include "tools/spec_options.h"
#include "tools/tool.h"
#include "tools/tune.h"

namespace jitconv::tools {
namespace {

namespace cl = llvm::cl;

constexpr const char* kOverview =
    "jitconv-run: compiles, checks and times convolutions on the GPU\n\n"
    "  jitconv-run --all\n"
    "  jitconv-run --config=A,C --math=ieee --json=result.json\n"
    "  jitconv-run --input=8,32,512,512 --weight=64,32,5,9 --tune\n\n"
    "Without a GPU everything is compiled for --arch and nothing is run; that is a success with --all or\n"
    "--compile-only and exit code 5 otherwise.\n"
    "Exit codes: 0 ok, 1 a result is wrong, 2 usage, 3 unsupported convolution, 4 compilation failed, 5 no device.\n";

struct Settings {
  std::vector<NamedSpec> chosen;
  std::optional<Target> target;
  MeasureOptions measure;
  std::string json;
  bool all = false, compile_only = false, require_device = false, quiet = false;
  std::optional<std::size_t> tune;  ///< how many candidates
};

/// Null, with the reason on stderr, if there is no usable GPU.
std::unique_ptr<Device> find_device() {
  try {
    return open_cuda_device();
  } catch (const CudaError& error) {
    if (error.code() != ErrorCode::no_driver && error.code() != ErrorCode::no_device) throw;
    fmt::print(stderr, "jitconv-run: no GPU: {}\n", error.what());
    return nullptr;
  }
}

void write_json(const Settings& settings, const std::string& text) {
  if (!settings.json.empty()) write_output(settings.json, text);
}

int compile_all(const Settings& settings) {
  const Target target = settings.target.value_or(parse_target(kDefaultArch));
  fmt::print(stderr, "jitconv-run: compiling for {}, running nothing\n", target.arch());
  std::vector<CompileRow> rows;
  int exit = kOk;
  Progress progress(settings.quiet);
  for (const NamedSpec& named : settings.chosen) {
    progress.show(fmt::format("[{}/{}] {}", rows.size() + 1, settings.chosen.size(), named.name));
    rows.push_back(compile_row(named, target, settings.measure.cold));
    if (exit == kOk) exit = rows.back().exit;
  }
  progress.clear();
  if (settings.json != "-") write_output("-", compile_table_text(rows));
  write_json(settings, compile_rows_json(rows, target));
  return exit;
}

int run_all(const Settings& settings, Device& device) {
  const Ceilings ceilings = ceilings_of(device.properties());
  std::vector<Measurement> rows;
  int exit = kOk;
  Progress progress(settings.quiet);
  for (const NamedSpec& named : settings.chosen) {
    progress.show(fmt::format("[{}/{}] {}", rows.size() + 1, settings.chosen.size(), named.name));
    rows.push_back(measure(device, named, settings.measure, ceilings));
    if (exit == kOk) exit = rows.back().exit;
  }
  progress.clear();
  if (settings.json != "-") {
    const DeviceProperties& properties = device.properties();
    std::string text =
        fmt::format("{} ({}), {}, {} data, median of {} launches\n", properties.name, properties.target.arch(),
                    properties.driver, check::to_string(settings.measure.kind), settings.measure.repeat);
    text += fmt::format("roofline: {}\n", ceilings.origin);
    text += "L2: flushed before each launch, or exceeded several times by the tensors\n\n";
    write_output("-", text + measurement_table_text(rows));
  }
  write_json(settings, measurements_json(rows, device.properties(), ceilings, settings.measure));
  return exit;
}

int tune_all(const Settings& settings, Device& device) {
  std::vector<TuneResult> results;
  Progress progress(settings.quiet);
  for (const NamedSpec& named : settings.chosen) {
    results.push_back(
        tune(device, named, settings.measure, *settings.tune, [&](const std::string& text) { progress.show(text); }));
    progress.clear();
    if (settings.json != "-") write_output("-", tune_text(results.back()) + "\n");
  }
  write_json(settings, tune_json(results, device.properties()));
  const bool wrong = std::any_of(results.begin(), results.end(), [](const TuneResult& one) { return one.any_wrong; });
  return wrong ? kCheckFailed : kOk;
}

int run(const Settings& settings) {
  if (settings.compile_only) return compile_all(settings);
  const std::unique_ptr<Device> device = find_device();
  if (device == nullptr) {
    if (settings.require_device) return kNoDevice;
    const int exit = compile_all(settings);
    return exit != kOk ? exit : settings.all ? kOk : kNoDevice;
  }
  if (settings.target && settings.target->arch() != device->properties().target.arch()) {
    throw UsageError(fmt::format("--arch: the device here is {}; use --compile-only for another one",
                                 device->properties().target.arch()));
  }
  return settings.tune ? tune_all(settings, *device) : run_all(settings, *device);
}

int parse_and_run(int argc, char** argv) {
  SpecOptions specs(SpecOptions::Choice::many);
  auto& group = tool_category();
  cl::opt<std::string> json("json", cl::desc("Write the results to a file as JSON; - for stdout, without the table"),
                            cl::value_desc("file"), cl::cat(group));
  cl::opt<int> repeat("repeat", cl::desc("Timed launches (21)"), cl::value_desc("n"), cl::init(21), cl::cat(group));
  cl::opt<int> warmup("warmup", cl::desc("Launches before them (3)"), cl::value_desc("n"), cl::init(3), cl::cat(group));
  cl::opt<bool> no_check("no-check", cl::desc("Time only"), cl::cat(group));
  cl::opt<bool> exact("exact", cl::desc("Integer data, compared bit for bit"), cl::cat(group));
  cl::opt<bool> positive("positive", cl::desc("Random data above zero, which show a biased sum"), cl::cat(group));
  cl::opt<std::uint64_t> seed("seed", cl::desc("Seed of the data (1)"), cl::value_desc("n"), cl::init(1),
                              cl::cat(group));
  cl::opt<bool> cold("cold", cl::desc("Time NVRTC even for kernels in the disk cache"), cl::cat(group));
  cl::opt<bool> tune("tune", cl::desc("Measure the cost model's candidates, not only its choice"), cl::cat(group));
  cl::opt<int> candidates("candidates", cl::desc("At most so many of them (48)"), cl::value_desc("n"), cl::init(48),
                          cl::cat(group));
  cl::opt<bool> compile_only("compile-only", cl::desc("Compile for --arch, run nothing"), cl::cat(group));
  cl::opt<bool> require_device("require-device", cl::desc("Without a GPU do nothing, exit code 5"), cl::cat(group));
  cl::opt<bool> quiet("quiet", cl::desc("No progress line"), cl::cat(group));
  parse_command_line(argc, argv, kOverview);
  if (specs.list_requested()) {
    write_output("-", SpecOptions::list_text());
    return kOk;
  }
  if (repeat < 1 || warmup < 0) throw UsageError("--repeat must be at least 1 and --warmup at least 0");
  if (exact && positive) throw UsageError("--exact and --positive exclude each other");
  if (candidates < 1) throw UsageError("--candidates must be at least 1");
  if (compile_only && (tune || require_device)) {
    throw UsageError("--compile-only excludes --tune and --require-device");
  }
  Settings settings;
  settings.chosen = specs.chosen();
  settings.target = specs.target();
  settings.all = specs.all_requested();
  settings.measure.repeat = repeat;
  settings.measure.warmup = warmup;
  settings.measure.check = !no_check;
  settings.measure.seed = seed;
  settings.measure.cold = cold;
  if (exact) settings.measure.kind = check::DataKind::exact;
  if (positive) settings.measure.kind = check::DataKind::positive;
  settings.json = json;
  settings.compile_only = compile_only;
  settings.require_device = require_device;
  settings.quiet = quiet;
  if (tune) settings.tune = static_cast<std::size_t>(candidates.getValue());
  return run(settings);
}

}  // namespace
}  // namespace jitconv::tools

int main(int argc, char** argv) {
  return jitconv::tools::run_tool("jitconv-run", [&] { return jitconv::tools::parse_and_run(argc, argv); });
}
