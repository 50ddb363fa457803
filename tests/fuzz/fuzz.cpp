// The program that runs random convolutions at the edges (edge_specs.h) by the thousand: integer data bit for bit, NaN
// around every buffer and in the workspace. Cases run in processes of a few each, because a fault on a GPU ends one.
// What fails is shrunk to the smallest convolution that still does.
//
//   fuzz --device=host --first=0 --count=1000
//   fuzz --device=gpu --count=50000 --jobs=16 --json=report.json
//   fuzz --device=gpu --first=17 --spec="input=..."     one convolution, with the plan that seed 17 would choose
//
// Exit codes: 0 all are right, 1 some are not, 2 usage, 5 no device.
#include <fmt/format.h>
#include <llvm/ADT/StringRef.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/FileSystem.h>
#include <llvm/Support/Program.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "fuzz/edge_specs.h"
#include "fuzz/worker.h"
#include "jitconv/error.h"
#include "support/fresh_cache.h"
#include "tools/json.h"
#include "tools/options.h"
#include "tools/tool.h"

namespace jitconv::test {
namespace {

namespace cl = llvm::cl;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kChunk = 64;      ///< cases of a process
constexpr unsigned kWorkerSeconds = 900;  ///< a process that takes longer hangs, and its case is wrong
constexpr std::size_t kMostShrunk = 5;
constexpr int kShrinkTries = 400;

struct Flags {
  cl::OptionCategory& group = tools::tool_category();
  cl::opt<std::string> device{"device", cl::desc("gpu or host"), cl::value_desc("name"), cl::Required, cl::cat(group)};
  cl::opt<std::uint64_t> first{"first", cl::desc("First seed (0)"), cl::value_desc("n"), cl::cat(group)};
  cl::opt<std::uint64_t> count{"count", cl::desc("Seeds (1000)"), cl::value_desc("n"), cl::init(1000), cl::cat(group)};
  cl::opt<unsigned> jobs{"jobs", cl::desc("Processes at a time (as many as cores)"), cl::value_desc("n"),
                         cl::init(std::max(1u, std::thread::hardware_concurrency())), cl::cat(group)};
  cl::opt<double> seconds{"seconds", cl::desc("Start no more cases after this time"), cl::value_desc("s"),
                          cl::init(1e9), cl::cat(group)};
  cl::opt<std::int64_t> products{"products", cl::desc("Multiplications of a convolution, at most (2000000)"),
                                 cl::value_desc("n"), cl::init(2'000'000), cl::cat(group)};
  cl::opt<std::string> spec{"spec", cl::desc("This convolution instead, once"), cl::value_desc("text"), cl::cat(group)};
  cl::opt<std::string> json{"json", cl::desc("Write the figures to a file"), cl::value_desc("file"), cl::cat(group)};
  cl::opt<std::string> log{"worker", cl::desc("Run the cases in this process, write what became of them to a file"),
                           cl::value_desc("file"), cl::Hidden, cl::cat(group)};

  FuzzDevice where() const {
    if (device == "gpu") return FuzzDevice::gpu;
    if (device == "host") return FuzzDevice::host;
    throw tools::UsageError(fmt::format("--device: '{}' is neither gpu nor host", device.getValue()));
  }
};

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

/// In the worker's process. A case that is begun and has no result took the process with it.
int work(const Flags& flags) {
  std::ofstream log(flags.log);
  FuzzWorker worker(flags.where(), flags.products);
  std::optional<ConvSpec> spec;
  if (!flags.spec.empty()) spec = parse_spec(flags.spec.getValue());
  for (std::uint64_t seed = flags.first; seed < flags.first + flags.count; ++seed) {
    log << "begin " << seed << std::endl;
    std::string wrong;
    try {
      wrong = worker.run(seed, spec);
    } catch (const CudaError& error) {
      log << "wrong " << seed << " " << one_line(error.what()) << std::endl;
      return tools::kCheckFailed;
    }
    if (!wrong.empty()) log << "wrong " << seed << " " << one_line(wrong) << std::endl;
  }
  const Report::Category& counts = worker.counts();
  log << "launches " << counts.launches << '\n';
  for (const auto& [family, kernels] : counts.families) log << "family " << kernels << " " << family << '\n';
  return tools::kOk;
}

/// What workers said, added up.
struct Totals {
  std::uint64_t cases = 0, launches = 0;
  std::map<std::string, std::uint64_t> families;
  std::map<std::uint64_t, std::string> wrong;  ///< by seed
};

/// Starts workers and reads their logs.
class Workers {
 public:
  Workers(const Flags& flags, const std::string& program) : flags_(flags), program_(program) {
    folder_ = (std::filesystem::temp_directory_path() / "jitconv-fuzz-XXXXXX").string();
    if (mkdtemp(folder_.data()) == nullptr) throw tools::ToolError(tools::kCheckFailed, "no temporary folder");
  }
  ~Workers() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// Runs the seeds, in as many processes as their faults need.
  void run(std::uint64_t first, std::uint64_t count, const std::string& spec, Totals& totals) const {
    const std::uint64_t end = first + count;
    while (first < end) first = run_process(first, end, spec, totals);
  }

  bool fails(std::uint64_t seed, const ConvSpec& spec) const {
    Totals totals;
    run(seed, 1, to_string(spec), totals);
    return !totals.wrong.empty();
  }

 private:
  /// Returns the first seed that was not run.
  std::uint64_t run_process(std::uint64_t first, std::uint64_t end, const std::string& spec, Totals& totals) const {
    const std::string log = fmt::format("{}/{}", folder_, number_++);
    std::vector<std::string> arguments = {program_,
                                          "--device=" + flags_.device.getValue(),
                                          fmt::format("--first={}", first),
                                          fmt::format("--count={}", end - first),
                                          fmt::format("--products={}", flags_.products.getValue()),
                                          "--worker=" + log};
    if (!spec.empty()) arguments.push_back("--spec=" + spec);
    std::string error;
    const int status = llvm::sys::ExecuteAndWait(
        program_, std::vector<llvm::StringRef>(arguments.begin(), arguments.end()), {}, {}, kWorkerSeconds,
        /*MemoryLimit=*/0, &error);
    if (status == tools::kNoDevice || status == tools::kUsage)
      throw tools::ToolError(static_cast<tools::ExitCode>(status), "a worker could not start");
    const std::uint64_t next = read(log, status, error, totals);
    std::error_code ignored;
    std::filesystem::remove(log, ignored);
    if (next == first)
      throw tools::ToolError(tools::kCheckFailed,
                             fmt::format("a worker ended with status {} before its first case {}", status, error));
    return next;
  }

  static std::uint64_t read(const std::string& log, int status, const std::string& error, Totals& totals) {
    std::ifstream stream(log);
    std::uint64_t begun = 0, next = 0;
    bool any = false;
    for (std::string line; std::getline(stream, line);) {
      std::istringstream words(line);
      std::string what, rest;
      std::uint64_t number = 0;
      words >> what >> number;
      std::getline(words >> std::ws, rest);
      if (what == "begin") {
        begun = number, next = number + 1, any = true;
        ++totals.cases;
      } else if (what == "wrong") {
        totals.wrong[number] = rest;
      } else if (what == "launches") {
        totals.launches += number;
      } else if (what == "family") {
        totals.families[rest] += number;
      }
    }
    if (status != 0 && any && totals.wrong.count(begun) == 0)
      totals.wrong[begun] = fmt::format("the process ended with status {} {}", status, error);
    return next;
  }

  const Flags& flags_;
  std::string program_, folder_;
  mutable std::atomic<int> number_{0};
};

/// All seeds, chunk by chunk in `jobs` threads that wait for processes.
Totals run_all(const Flags& flags, const Workers& workers) {
  Totals totals;
  std::mutex mutex;
  std::atomic<std::uint64_t> next{flags.first};
  const std::uint64_t end = flags.first + flags.count;
  const auto begin = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  std::exception_ptr failure;
  const auto body = [&] {
    try {
      while (elapsed() < flags.seconds) {
        const std::uint64_t first = next.fetch_add(kChunk);
        if (first >= end) return;
        Totals some;
        workers.run(first, std::min(kChunk, end - first), {}, some);
        const std::lock_guard lock(mutex);
        totals.cases += some.cases, totals.launches += some.launches;
        for (const auto& [family, kernels] : some.families) totals.families[family] += kernels;
        for (const auto& [seed, what] : some.wrong)
          fmt::print("seed {}: {}\n  {}\n", seed, to_string(edge_spec(seed, flags.products)), what);
        totals.wrong.merge(some.wrong);
        fmt::print("{} of {} convolutions, {} wrong, {:.0f} s\n", totals.cases, flags.count.getValue(),
                   totals.wrong.size(), elapsed());
        std::fflush(stdout);
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < flags.jobs; ++i) threads.emplace_back(body);
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
  return totals;
}

tools::json::Value report(const Flags& flags, const Totals& totals) {
  tools::json::Object families;
  for (const auto& [family, kernels] : totals.families) families[family] = kernels;
  tools::json::Array wrong;
  for (const auto& [seed, what] : totals.wrong)
    wrong.push_back(
        tools::json::Object{{"seed", seed}, {"spec", to_string(edge_spec(seed, flags.products))}, {"what", what}});
  return tools::json::Object{{"device", flags.device.getValue()},
                             {"first_seed", flags.first.getValue()},
                             {"convolutions", totals.cases},
                             {"launches", totals.launches},
                             {"products", flags.products.getValue()},
                             {"families", families},
                             {"wrong", wrong}};
}

int run(int argc, char** argv) {
  const Flags flags;
  tools::parse_command_line(argc, argv, "fuzz: runs random convolutions at the edges and checks each\n");
  if (!flags.log.empty()) return work(flags);
  const FreshCache cache("fuzz");  // of all workers, which inherit the variable
  const Workers workers(flags, llvm::sys::fs::getMainExecutable(argv[0], nullptr));
  flags.where();
  if (!flags.spec.empty()) {
    Totals totals;
    workers.run(flags.first, 1, flags.spec, totals);
    fmt::print("{}\n", totals.wrong.empty() ? "right" : totals.wrong.begin()->second);
    return totals.wrong.empty() ? tools::kOk : tools::kCheckFailed;
  }
  fmt::print("seeds {} to {} on the {}\n", flags.first.getValue(), flags.first + flags.count - 1,
             flags.device.getValue());
  const Totals totals = run_all(flags, workers);
  std::size_t shrunk = 0;
  for (const auto& [seed, what] : totals.wrong) {
    if (++shrunk > kMostShrunk) break;
    const ConvSpec smallest = shrink(
        edge_spec(seed, flags.products), [&, seed = seed](const ConvSpec& spec) { return workers.fails(seed, spec); },
        kShrinkTries);
    fmt::print("smallest of seed {}: --first={} --spec=\"{}\"\n", seed, seed, to_string(smallest));
  }
  fmt::print("fuzz: {} convolutions, {} launches, {} wrong\n", totals.cases, totals.launches, totals.wrong.size());
  if (!flags.json.empty()) tools::write_output(flags.json, tools::json::render(report(flags, totals)));
  const bool complete = flags.seconds.getNumOccurrences() > 0 ? totals.cases > 0 : totals.cases == flags.count;
  return totals.wrong.empty() && complete ? tools::kOk : tools::kCheckFailed;
}

}  // namespace
}  // namespace jitconv::test

int main(int argc, char** argv) {
  return jitconv::tools::run_tool("fuzz", [&] { return jitconv::test::run(argc, argv); });
}
