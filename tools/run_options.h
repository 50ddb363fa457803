// The command line of jitconv-run as a value, with every rule about which options go together checked.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/host_run.h"
#include "tools/measure.h"
#include "tools/spec_options.h"

namespace jitconv::tools {

enum class DeviceChoice { any, gpu, host };

struct RunOptions {
  bool list = false;  ///< print the documented configurations and stop; nothing else is set
  std::vector<NamedSpec> chosen;
  std::optional<Target> target;  ///< --arch
  DeviceChoice device = DeviceChoice::any;
  bool compile_only = false, require_device = false, quiet = false;
  std::string json;
  std::optional<std::size_t> tune;  ///< how many candidates

  MeasureOptions measure;  ///< on a GPU
  HostOptions host;        ///< on the host

  // Names of options that were given and mean something on one of the two only.
  std::vector<std::string> gpu_only, host_only;
};

/// Reads the command line; --help and --version print and leave with 0. Throws UsageError, and SpecError for
/// convolutions that cannot be computed.
RunOptions parse_run_options(int argc, const char* const* argv);

}  // namespace jitconv::tools
