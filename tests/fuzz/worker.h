// Runs cases of edge_specs.h one after the other in this process, on a GPU or on the CPU, and says what became of each.
// A fault on a GPU ends the process's use of it, so fuzz.cpp starts a process for each few of them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "jitconv/spec.h"
#include "support/report.h"
#include "tools/device.h"

namespace jitconv::test {

/// Where kernels run. On the host, cases are for several architectures in turn.
enum class FuzzDevice { gpu, host };

class FuzzWorker {
 public:
  /// Throws CudaError if a GPU is asked for and there is none.
  explicit FuzzWorker(FuzzDevice device, std::int64_t most_products);
  ~FuzzWorker();

  /// The case of `seed`, or `spec` with the plan that the seed would choose: "" or everything that is wrong. Throws
  /// CudaError if the driver reports one.
  std::string run(std::uint64_t seed, const std::optional<ConvSpec>& spec = {});

  const Report::Category& counts() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace jitconv::test
