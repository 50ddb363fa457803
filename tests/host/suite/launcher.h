// Launches cases on the CPU for run_cases(): asynchronous copies land late in one launch of a case and early in the
// next, threads run in another order each time, and every finding fails the case.
#pragma once

#include <cstdint>
#include <string>

#include "support/runner.h"
#include "tools/host_device.h"

namespace jitconv::test {

class HostLauncher {
 public:
  explicit HostLauncher(tools::HostDevice& device) : device_(device) {}

  struct Totals {
    std::int64_t launches = 0, late = 0, early = 0;
    std::int64_t blocks = 0;
    std::int64_t multiply_adds = 0;  ///< that the blocks executed
    double seconds = 0;              ///< of execution alone
    std::int64_t findings = 0;
  };
  const Totals& totals() const { return totals_; }

  /// "" or the findings.
  std::string launch(const Case& wanted, const Kernel& kernel, const LaunchArgs& args);

 private:
  tools::HostDevice& device_;
  Totals totals_;
  const Case* last_ = nullptr;
  std::uint64_t cases_ = 0, launch_of_case_ = 0;
};

}  // namespace jitconv::test
