// See worker.h.
#include "fuzz/worker.h"

#include "fuzz/edge_specs.h"
#include "host/suite/launcher.h"
#include "support/runner.h"

namespace jitconv::test {
namespace {

/// Generations that generate different code; most cases take the one that has every family.
constexpr const char* kHostArchitectures[] = {"sm_90a", "sm_90a", "sm_90a", "sm_80", "sm_90a", "sm_75"};

}  // namespace

class FuzzWorker::State {
 public:
  State(FuzzDevice device, std::int64_t most_products) : most_products_(most_products) {
    if (device == FuzzDevice::gpu) {
      gpu_ = tools::open_cuda_device();
      arena_ = std::make_unique<Arena>(*gpu_);
      return;
    }
    host_ = std::make_unique<tools::HostDevice>(Target::host());
    launcher_ = std::make_unique<HostLauncher>(*host_);
    arena_ = std::make_unique<Arena>(*host_);
    options_.launch = [this](const Case& wanted, const Kernel& kernel, const LaunchArgs& args) {
      return launcher_->launch(wanted, kernel, args);
    };
  }

  std::string run(std::uint64_t seed, const std::optional<ConvSpec>& spec) {
    Case one{std::to_string(seed),
             spec ? *spec : edge_spec(seed, most_products_),
             std::nullopt,
             false,
             {check::DataKind::exact}};
    tools::Device& device = gpu_ ? *gpu_ : static_cast<tools::Device&>(*host_);
    try {
      one.plan = edge_plan(seed, one.spec, target(seed));
    } catch (const Error& error) {
      ++counts_.failed;
      return error.what();
    }
    if (launcher_) one.kinds.push_back(check::DataKind::exact);  // copies land early in one launch, late in the other
    return run_case(device, *arena_, one, seed, options_, counts_);
  }

  const Report::Category& counts() const { return counts_; }

 private:
  Target target(std::uint64_t seed) const {
    if (gpu_) return gpu_->properties().target;
    return Target::host(parse_target(kHostArchitectures[seed / 2 % std::size(kHostArchitectures)]));
  }

  std::int64_t most_products_;
  std::unique_ptr<tools::Device> gpu_;
  std::unique_ptr<tools::HostDevice> host_;
  std::unique_ptr<HostLauncher> launcher_;
  std::unique_ptr<Arena> arena_;
  RunOptions options_;
  Report::Category counts_;
};

FuzzWorker::FuzzWorker(FuzzDevice device, std::int64_t most_products)
    : state_(std::make_unique<State>(device, most_products)) {}
FuzzWorker::~FuzzWorker() = default;

std::string FuzzWorker::run(std::uint64_t seed, const std::optional<ConvSpec>& spec) { return state_->run(seed, spec); }
const Report::Category& FuzzWorker::counts() const { return state_->counts(); }

}  // namespace jitconv::test
