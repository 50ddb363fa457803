// Runs a compiled kernel module on the CPU, block by block, threads as fibers, and checks what it does while it runs.
// Knows nothing of convolutions: a launch is an entry, a grid and the buffers its parameters point to.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "codegen/source.h"
#include "host/counters.h"
#include "host/finding.h"
#include "host/module.h"

namespace jitconv::host {

/// Every byte of what a kernel must not read yet: a NaN as float, half, bfloat16 and tf32.
inline constexpr int kPoison = 0xff;

/// When an asynchronous operation takes effect: as soon as it may, as late as it may, or either, drawn per operation.
enum class Landing : std::uint8_t { early, late, random };

struct Settings {
  std::uint64_t seed = 1;  ///< of the order threads and blocks run in, and of Landing::random
  Landing landing = Landing::late;
  std::size_t most_findings = 8;  ///< the launch stops after so many
  bool operator==(const Settings&) const = default;
};

/// Memory a kernel parameter points to. Every access outside the buffers of its launch is a finding.
struct Buffer {
  std::string name;  ///< the parameter's, for findings
  void* data = nullptr;
  std::int64_t bytes = 0;
  bool writable = false;
  codegen::TensorMapShape map = {};  ///< of a rank: the parameter is a tensor map of `data`, else `data`
};

struct Launch {
  std::string entry;
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  std::uint32_t threads = 1;
  std::uint32_t shared_bytes = 0;  ///< dynamic shared memory
  std::vector<Buffer> buffers;     ///< in the order of the entry's parameters
};

struct Report {
  std::vector<Finding> findings;  ///< empty: every rule was kept
  Counters counters;              ///< of modules compiled to count
  std::uint64_t blocks = 0;       ///< that ran
};

/// One launch at a time per process: callers on several threads take turns. Deterministic for equal settings.
Report execute(const Module& module, const Launch& launch, const Settings& settings);

}  // namespace jitconv::host
