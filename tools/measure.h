// One kernel on a device: compiled, checked, timed. No printing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codegen/plan.h"
#include "tools/problem.h"
#include "tools/roofline.h"
#include "tools/spec_options.h"
#include "tools/tool.h"

namespace jitconv::tools {

struct MeasureOptions {
  int warmup = 3;
  int repeat = 21;
  bool check = true;
  check::DataKind kind = check::DataKind::random;
  std::uint64_t seed = 1;
  std::int64_t check_budget = 16'000'000;  ///< multiplications of the reference on the host, per convolution
  bool cold = false;                       ///< compile with NVRTC even if the disk cache has the kernel
};

/// A kernel and how long it took to get it.
struct Compiled {
  codegen::ConvPlan plan;
  Kernel kernel;
  std::optional<double> cold_ms;  ///< planning, generating and NVRTC; set if NVRTC ran
  std::optional<double> warm_ms;  ///< planning, generating and reading the disk cache; set if the cache had it
};

/// Compiles through the cache, twice, so that both times are known where the cache is on.
Compiled compile_timed(const ConvSpec& spec, const Target& target, bool cold);

struct Timing {
  std::vector<double> ms;  ///< ascending
  double median() const;
  bool l2_flushed = false;  ///< before each launch; otherwise the tensors are several times as large as L2
};

Timing time_kernel(Device& device, Problem& problem, const Kernel& kernel, const MeasureOptions& options);

/// Why the tensors of a problem do not fit the device's free memory; empty if they do.
std::string lack_of_memory(const Device& device, const ConvSpec& spec, std::int64_t workspace_bytes);

enum class Outcome { ok, wrong, skipped, failed };

/// Everything jitconv-run prints of one convolution.
struct Measurement {
  NamedSpec named;
  Outcome outcome = Outcome::ok;
  ExitCode exit = kOk;
  std::string note;  ///< why skipped or failed, what is wrong
  std::optional<Compiled> compiled;
  std::optional<double> load_ms;  ///< from the compiled kernel in memory to one that can be launched
  std::optional<OutputCheck> check;
  std::optional<Timing> timing;
  codegen::Work work;
  double floor_ms = 0;  ///< of the family that was chosen
};

/// Never throws for a convolution that fails by itself; a CudaError that spoils the context passes through.
Measurement measure(Device& device, const NamedSpec& named, const MeasureOptions& options, const Ceilings& ceilings);

}  // namespace jitconv::tools
