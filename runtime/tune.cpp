// tune(): which candidates are compiled and measured, and what becomes of the fastest.
#include "jitconv/tune.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "codegen/plan.h"
#include "runtime/compile.h"
#include "runtime/driver.h"
#include "runtime/fork_guard.h"
#include "runtime/kernel_timer.h"
#include "runtime/log.h"
#include "runtime/tuning.h"

namespace jitconv {
namespace {

using codegen::ConvPlan;

void require_positive(const char* field, int value) {
  if (value >= 1) return;
  throw SpecError(ErrorCode::invalid_argument, field, fmt::format("{} is {}, must be at least 1", field, value));
}

/// The cheapest `most`, after the best of each family.
std::vector<ConvPlan> candidates_of(const ConvSpec& spec, const Target& target, std::size_t most) {
  std::vector<ConvPlan> all = codegen::enumerate_plans(spec, target, SIZE_MAX);
  std::set<codegen::Family> families;
  std::stable_partition(all.begin(), all.end(),
                        [&](const ConvPlan& plan) { return families.insert(plan.family()).second; });
  if (all.size() > most) all.resize(most);
  return all;
}

/// In one thread for each core. Candidates that cannot be compiled are left out; if none can, the first one's error is
/// thrown.
std::vector<Kernel> compile_all(const std::vector<ConvPlan>& plans, const CompileOptions& options) {
  std::vector<std::optional<Kernel>> compiled(plans.size());
  std::vector<std::exception_ptr> errors(plans.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < plans.size(); i = next++) {
      try {
        compiled[i] = runtime::compile_plan(plans[i], options);
      } catch (...) {
        errors[i] = std::current_exception();
      }
    }
  };
  {
    const std::size_t count = std::min<std::size_t>(plans.size(), std::max(1u, std::thread::hardware_concurrency()));
    std::vector<std::jthread> others;
    try {
      while (others.size() + 1 < count) others.emplace_back(work);
    } catch (const std::exception&) {  // no more threads, or no memory for them: fewer take longer
    }
    work();
  }
  std::vector<Kernel> kernels;
  for (std::optional<Kernel>& kernel : compiled)
    if (kernel) kernels.push_back(*std::move(kernel));
  if (kernels.empty()) std::rethrow_exception(errors.front());
  return kernels;
}

std::optional<std::size_t> fastest(const std::vector<std::optional<double>>& ms) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < ms.size(); ++i)
    if (ms[i] && (!best || *ms[i] < *ms[*best])) best = i;
  return best;
}

}  // namespace

Kernel runtime::tune(const ConvSpec& spec, const Target& target, const TuneOptions& options,
                     const TimeKernels& time_kernels) {
  require_positive("candidates", options.candidates);
  require_positive("launches", options.launches);
  validate(spec);
  if (!options.again)
    if (const std::optional<ConvPlan> plan = remembered_choice(spec, target))
      return compile_plan(*plan, options.compile);
  const auto most = static_cast<std::size_t>(options.candidates);
  const std::vector<Kernel> kernels = compile_all(candidates_of(spec, target, most), options.compile);
  if (plan_of(kernels.front()).kernels.empty()) return kernels.front();  // no outputs, nothing to measure
  const std::vector<std::optional<double>> ms = time_kernels(kernels, options.launches);
  const std::optional<std::size_t> best = fastest(ms);
  if (!best) throw CudaError(ErrorCode::cuda, 0, "tune", "tune: no candidate could be launched");
  log(LogLevel::info,
      fmt::format("tuning: {} of {} candidates measured, {} with {:.4f} ms is the fastest for {}",
                  std::ranges::count_if(ms, [](const auto& one) { return one.has_value(); }), kernels.size(),
                  codegen::to_string(plan_of(kernels[*best]).family()), *ms[*best], to_string(spec)));
  remember_choice(plan_of(kernels[*best]));
  return kernels[*best];
}

ConvPlan runtime::plan_to_build(const ConvSpec& spec, const Target& target, const CompileOptions& options,
                                bool is_current_device) {
  const TuningMode mode = tuning_mode();
  if (mode == TuningMode::off) return codegen::make_plan(spec, target);
  std::optional<ConvPlan> chosen = remembered_choice(spec, target);
  if (!chosen && mode == TuningMode::measure && is_current_device) {
    try {
      tune(spec, target, {.compile = options}, time_on_current_device);
      chosen = remembered_choice(spec, target);
    } catch (const CudaError& error) {
      log(LogLevel::warn, fmt::format("JITCONV_TUNE: {} is not tuned: {}", to_string(spec), error.what()));
    }
  }
  return chosen ? *std::move(chosen) : codegen::make_plan(spec, target);
}

Kernel tune(const ConvSpec& spec, const TuneOptions& options) {
  runtime::refuse_after_fork();
  const runtime::Driver& driver = runtime::Driver::get();
  const int device = driver.ensure_context();
  Kernel kernel = runtime::tune(spec, driver.target_of(device), options, runtime::time_on_current_device);
  runtime::prepare(kernel);
  return kernel;
}

}  // namespace jitconv
