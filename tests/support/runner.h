// Runs many convolutions and checks each: kernels are compiled and references computed in every core, while one thread
// launches what is ready, on a GPU or on the CPU. All judging is done here, so that no test can forget a part of it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "codegen/plan.h"
#include "support/arena.h"
#include "support/report.h"
#include "support/tensors.h"

namespace jitconv::test {

struct Case {
  std::string name;
  ConvSpec spec;
  std::optional<codegen::ConvPlan> plan;  ///< else the planner's choice
  bool reduced = false;                   ///< the batch is smaller than in the list
  std::vector<check::DataKind> kinds = {check::DataKind::exact, check::DataKind::random};
};

struct RunOptions {
  ReferenceLimits limits;
  Arena::Mode memory = Arena::Mode::redzones;
  unsigned workers = 0;  ///< threads that prepare cases; 0: as many as the machine has cores
  /// Launches what has its tensors and says what was wrong with that, apart from the result, which is judged in any
  /// case. Empty: Kernel::launch() on the default stream.
  std::function<std::string(const Case&, const Kernel&, const LaunchArgs&)> launch;
};

/// Reports each wrong convolution as a test failure, the first 20 in words, and adds the counts to Report under
/// `category`. Returns the counts of this call.
Report::Category run_cases(tools::Device& device, const std::string& category, const std::vector<Case>& cases,
                           const RunOptions& options = {});

/// Compiles, launches and judges one case in the calling thread, with data of `seed`: "" or everything that is wrong.
/// Adds to `counts`. Throws CudaError if the driver reports one: the device is then of no use to this process any more.
std::string run_case(tools::Device& device, Arena& arena, const Case& wanted, std::uint64_t seed,
                     const RunOptions& options, Report::Category& counts);

/// The judgement of one launch that has been made with `reference`'s data: "" or everything that is wrong. Adds to
/// `counts`.
std::string judge(tools::Device& device, const ConvSpec& spec, const Reference& reference, const LaunchArgs& args,
                  const Arena& arena, Report::Category& counts);

}  // namespace jitconv::test
