// Options of jitconv-run and what excludes what.
#include "tools/run_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <llvm/Support/CommandLine.h>

#include "tools/options.h"
#include "tools/tool.h"

namespace jitconv::tools {
namespace {

namespace cl = llvm::cl;

constexpr const char* kOverview =
    "jitconv-run: compiles, checks and times convolutions on the GPU, or executes and checks them on the host\n\n"
    "  jitconv-run --all\n"
    "  jitconv-run --config=A,C --math=ieee --json=result.json\n"
    "  jitconv-run --input=8,32,512,512 --weight=64,32,5,9 --tune\n"
    "  jitconv-run --device=host --config=B --counters\n\n"
    "Without a GPU the generated kernels are compiled for the CPU and executed there, at reduced N, H and W.\n";

constexpr const char* kExitStatus =
    "\nEXIT STATUS:\n\n"
    "  0  ok\n"
    "  1  a result is wrong, a kernel broke a rule, the driver failed, or the output cannot be written\n"
    "  2  the command line cannot be read\n"
    "  3  the convolution cannot be computed\n"
    "  4  compilation failed, or NVRTC or the C++ compiler is missing\n"
    "  5  no usable GPU, and the host was not to stand in for it\n"
    "  SIGINT, SIGTERM and SIGHUP end it as any program, after the rows that ran are written\n";

constexpr int kWorkLimit = 400;  // M multiply-adds: all documented configurations take minutes on two cores

/// Lives while the command line is parsed; LLVM's options register themselves.
struct Flags {
  cl::OptionCategory& group = tool_category();
  cl::opt<std::string> device{"device", cl::desc("gpu or host (gpu if there is one, else host)"),
                              cl::value_desc("name"), cl::cat(group)};
  cl::opt<std::string> json{"json", cl::desc("Write the results to a file as JSON; - for stdout, without the table"),
                            cl::value_desc("file"), cl::cat(group)};
  cl::opt<bool> exact{"exact", cl::desc("Integer data only, compared bit for bit"), cl::cat(group)};
  cl::opt<bool> positive{"positive", cl::desc("Random data above zero, which show a biased sum"), cl::cat(group)};
  cl::opt<std::uint64_t> seed{"seed", cl::desc("Seed of the data and, on the host, of the order of threads (1)"),
                              cl::value_desc("n"), cl::init(1), cl::cat(group)};
  cl::opt<bool> compile_only{"compile-only", cl::desc("Compile for --arch with NVRTC, run nothing"), cl::cat(group)};
  cl::opt<bool> quiet{"quiet", cl::desc("No progress line"), cl::cat(group)};

  cl::opt<int> repeat{"repeat", cl::desc("GPU: timed launches (21)"), cl::value_desc("n"), cl::init(21),
                      cl::cat(group)};
  cl::opt<int> warmup{"warmup", cl::desc("GPU: launches before them (3)"), cl::value_desc("n"), cl::init(3),
                      cl::cat(group)};
  cl::opt<bool> no_check{"no-check", cl::desc("GPU: time only"), cl::cat(group)};
  cl::opt<bool> cold{"cold", cl::desc("Time NVRTC even for kernels in the disk cache"), cl::cat(group)};
  cl::opt<bool> tune{"tune", cl::desc("GPU: measure the cost model's candidates, not only its choice"), cl::cat(group)};
  cl::opt<int> candidates{"candidates", cl::desc("GPU: at most so many of them (48)"), cl::value_desc("n"),
                          cl::init(48), cl::cat(group)};
  cl::opt<bool> require_device{"require-device", cl::desc("Without a GPU do nothing, exit code 5"), cl::cat(group)};

  cl::opt<bool> counters{"counters", cl::desc("Host: count memory requests, bank conflicts and FMAs"), cl::cat(group)};
  cl::opt<std::string> landing{"landing",
                               cl::desc("Host: when asynchronous copies land: early, late or random (one run each of "
                                        "early and late)"),
                               cl::value_desc("when"), cl::cat(group)};
  cl::opt<int> work_limit{"work-limit",
                          cl::desc("Host: million multiply-adds above which N, H and W are reduced (400)"),
                          cl::value_desc("n"), cl::init(kWorkLimit), cl::cat(group)};
  cl::opt<bool> full_size{"full-size", cl::desc("Host: reduce nothing"), cl::cat(group)};

  std::vector<std::string> given(std::initializer_list<const cl::Option*> options) const {
    std::vector<std::string> names;
    for (const cl::Option* one : options)
      if (one->getNumOccurrences() > 0) names.push_back("--" + one->ArgStr.str());
    return names;
  }
};

DeviceChoice read_device(const Flags& flags) {
  if (flags.device.getNumOccurrences() == 0) return DeviceChoice::any;
  if (flags.device == "gpu") return DeviceChoice::gpu;
  if (flags.device == "host") return DeviceChoice::host;
  throw UsageError(fmt::format("--device: '{}' is neither gpu nor host", flags.device.getValue()));
}

void read_landing(const Flags& flags, HostOptions& options) {
  if (flags.landing.getNumOccurrences() == 0) return;
  const std::string& value = flags.landing.getValue();
  host::Landing landing{};
  if (value == "early") {
    landing = host::Landing::early;
  } else if (value == "late") {
    landing = host::Landing::late;
  } else if (value == "random") {
    landing = host::Landing::random;
  } else {
    throw UsageError(fmt::format("--landing: '{}' is none of early, late and random", value));
  }
  for (HostRunKind& run : options.runs) run.landing = landing;
}

void check_together(const RunOptions& options) {
  const auto refuse = [](const std::vector<std::string>& names, const char* with) {
    if (!names.empty()) throw UsageError(fmt::format("{} and {} exclude each other", names.front(), with));
  };
  if (options.device == DeviceChoice::host) refuse(options.gpu_only, "--device=host");
  if (options.device == DeviceChoice::gpu) refuse(options.host_only, "--device=gpu");
  if (options.compile_only) {
    refuse(options.host_only, "--compile-only");
    if (options.tune) refuse({"--tune"}, "--compile-only");
    if (options.require_device) refuse({"--require-device"}, "--compile-only");
    if (options.device == DeviceChoice::gpu) refuse({"--device=gpu"}, "--compile-only");
  }
}

HostOptions host_options(const Flags& flags, bool documented) {
  HostOptions options;
  if (flags.exact) options.runs[1].data = check::DataKind::exact;
  if (flags.positive) options.runs[1].data = check::DataKind::positive;
  read_landing(flags, options);
  options.seed = flags.seed;
  options.limits = host_work_limits(documented, flags.full_size, std::int64_t{flags.work_limit} * 1'000'000);
  options.counters = flags.counters;
  return options;
}

MeasureOptions measure_options(const Flags& flags) {
  MeasureOptions options;
  options.repeat = flags.repeat;
  options.warmup = flags.warmup;
  options.check = !flags.no_check;
  options.seed = flags.seed;
  options.cold = flags.cold;
  if (flags.exact) options.kind = check::DataKind::exact;
  if (flags.positive) options.kind = check::DataKind::positive;
  return options;
}

}  // namespace

RunOptions parse_run_options(int argc, const char* const* argv) {
  const SpecOptions specs(SpecOptions::Choice::many);
  const Flags flags;
  const cl::extrahelp exit_status(kExitStatus), environment(kEnvironmentHelp);
  parse_command_line(argc, argv, kOverview);
  RunOptions options;
  options.list = specs.list_requested();
  if (options.list) return options;
  if (flags.repeat < 1 || flags.warmup < 0) throw UsageError("--repeat must be at least 1 and --warmup at least 0");
  if (flags.exact && flags.positive) throw UsageError("--exact and --positive exclude each other");
  if (flags.candidates < 1) throw UsageError("--candidates must be at least 1");
  if (flags.work_limit < 1) throw UsageError("--work-limit must be at least 1");
  if (flags.full_size && flags.work_limit.getNumOccurrences() > 0)
    throw UsageError("--full-size and --work-limit exclude each other");

  options.device = read_device(flags);
  options.compile_only = flags.compile_only;
  options.require_device = flags.require_device;
  options.quiet = flags.quiet;
  options.json = flags.json;
  if (flags.tune) options.tune = static_cast<std::size_t>(flags.candidates.getValue());
  options.gpu_only = flags.given({&flags.tune, &flags.candidates, &flags.repeat, &flags.warmup, &flags.no_check,
                                  &flags.cold, &flags.compile_only, &flags.require_device});
  options.host_only = flags.given({&flags.counters, &flags.landing, &flags.work_limit, &flags.full_size});
  check_together(options);

  options.chosen = specs.chosen();
  options.target = specs.target();
  options.measure = measure_options(flags);
  options.host = host_options(flags, !specs.shape_given());
  return options;
}

}  // namespace jitconv::tools
