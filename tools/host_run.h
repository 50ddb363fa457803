// Convolutions on the CPU: each is reduced, compiled, run twice with every rule checked, and compared with the
// reference. No printing.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "host/engine.h"
#include "tools/host_device.h"
#include "tools/measure.h"
#include "tools/reduce.h"

namespace jitconv::tools {

/// How a kernel is run once.
struct HostRunKind {
  check::DataKind data = check::DataKind::exact;
  host::Landing landing = host::Landing::early;
};

struct HostOptions {
  std::array<HostRunKind, 2> runs{HostRunKind{check::DataKind::exact, host::Landing::early},
                                  HostRunKind{check::DataKind::random, host::Landing::late}};
  std::uint64_t seed = 1;  ///< of the data and of the order of threads
  WorkLimits limits;
  bool counters = false;
};

/// Documented configurations are reduced to the least that shows everything; what the user describes is run as given
/// up to `most` multiply-adds. `full_size`: nothing is reduced.
WorkLimits host_work_limits(bool documented, bool full_size, std::int64_t most);

struct HostRun {
  HostRunKind kind;
  OutputCheck check;
  std::vector<host::Report> reports;  ///< one per kernel of the launch
  double ms = 0;                      ///< of the launch, on the wall
  double cpu_ms = 0;                  ///< of the core that executed it
  std::size_t findings() const;
  bool passed() const { return check.passed() && findings() == 0; }
};

/// Everything jitconv-run prints of one convolution.
struct HostMeasurement {
  NamedSpec named;
  Outcome outcome = Outcome::ok;  ///< never skipped: what cannot be run has failed
  ExitCode exit = kOk;
  std::string note;  ///< why it failed, what is wrong
  std::optional<Reduction> reduction;
  std::optional<Kernel> kernel;
  std::optional<double>
      compile_ms;  ///< of the C++ compiler and what surrounds it; none if the disk cache had the module
  std::vector<HostRun> runs;
  std::size_t findings() const;
  /// Multiply-adds of the convolution per second of one core, over all runs; 0 if there was none.
  double rate() const;
};

/// While one convolution runs, the next is compiled and its reference computed. `begins` is told which one runs,
/// `ended` is given each as soon as it has run.
void run_on_host(HostDevice& device, const std::vector<NamedSpec>& chosen, const HostOptions& options,
                 const std::function<void(const std::string&)>& begins,
                 const std::function<void(HostMeasurement)>& ended);

}  // namespace jitconv::tools
