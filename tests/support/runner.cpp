// See runner.h.
#include "support/runner.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "jitconv/error.h"
#include "runtime/compile.h"
#include "tools/check/bound.h"
#include "tools/results.h"

namespace jitconv::test {
namespace {

constexpr std::size_t kMostShown = 20;  // failures in words

/// A case that is ready to be launched, or why it is not.
struct Prepared {
  const Case* wanted = nullptr;
  std::optional<Kernel> kernel;
  std::vector<Reference> references;
  std::string error;
};

Prepared prepare(const Case& wanted, std::uint64_t seed, const Target& target, const ReferenceLimits& limits) {
  Prepared ready;
  ready.wanted = &wanted;
  try {
    ready.kernel = runtime::compile_plan(wanted.plan ? *wanted.plan : codegen::make_plan(wanted.spec, target));
    for (const check::DataKind kind : wanted.kinds)
      ready.references.push_back(make_reference(wanted.spec, kind, seed, limits));
  } catch (const CompileError& error) {
    ready.error = fmt::format("{}\n{}", error.what(), error.log());
  } catch (const std::exception& error) {
    ready.error = error.what();
  }
  return ready;
}

/// Prepares cases in every core, a bounded number ahead of take().
class Preparation {
 public:
  Preparation(const std::vector<Case>& cases, const Target& target, const RunOptions& options) {
    const unsigned workers = options.workers != 0 ? options.workers : std::max(1u, std::thread::hardware_concurrency());
    for (unsigned i = 0; i < workers; ++i)
      workers_.emplace_back([&cases, target, limits = options.limits, this] { work(cases, target, limits); });
  }

  ~Preparation() {
    {
      const std::lock_guard lock(mutex_);
      next_ = kStopped;
    }
    room_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }
  Preparation(const Preparation&) = delete;
  Preparation& operator=(const Preparation&) = delete;

  Prepared take() {
    std::unique_lock lock(mutex_);
    arrival_.wait(lock, [this] { return !ready_.empty(); });
    Prepared one = std::move(ready_.front());
    ready_.pop_front();
    room_.notify_one();
    return one;
  }

 private:
  static constexpr std::size_t kMostAhead = 48, kStopped = SIZE_MAX;

  void work(const std::vector<Case>& cases, const Target& target, const ReferenceLimits& limits) {
    for (;;) {
      std::size_t mine;
      {
        std::unique_lock lock(mutex_);
        room_.wait(lock, [this] { return ready_.size() < kMostAhead || next_ == kStopped; });
        if (next_ >= cases.size()) return;
        mine = next_++;
      }
      Prepared one = prepare(cases[mine], mine + 1, target, limits);
      const std::lock_guard lock(mutex_);
      ready_.push_back(std::move(one));
      arrival_.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable arrival_, room_;
  std::deque<Prepared> ready_;
  std::size_t next_ = 0;
  std::vector<std::thread> workers_;
};

/// Adds to `wrong` everything that is. Throws Error if a launch does.
void launch_and_judge(tools::Device& device, Arena& arena, const Prepared& ready, const RunOptions& options,
                      Report::Category& counts, std::string& wrong) {
  const ConvSpec& spec = ready.wanted->spec;
  const Kernel& kernel = *ready.kernel;
  ++counts.kernels;
  ++counts.families[std::string(codegen::to_string(runtime::plan_of(kernel).family()))];
  if (ready.wanted->reduced) ++counts.reduced;
  const LaunchArgs args = place_tensors(arena, spec, kernel.workspace_bytes());
  for (const Reference& reference : ready.references) {
    fill_tensors(device, spec, reference.data, args, kernel.workspace_bytes());
    std::string found;
    if (options.launch) {
      found = options.launch(*ready.wanted, kernel, args);
    } else {
      kernel.launch(nullptr, args);
    }
    const std::string judgement = judge(device, spec, reference, args, arena, counts);
    if (!found.empty() && judgement.empty()) ++counts.failed;  // judge() counts what it finds itself
    if (!found.empty() && !judgement.empty()) found += "; ";
    found += judgement;
    if (!found.empty()) wrong += fmt::format("  {} data: {}\n", check::to_string(reference.kind), found);
  }
}

/// The same of a case that may not be ready. Throws CudaError alone.
std::string outcome_of(tools::Device& device, Arena& arena, const Prepared& ready, const RunOptions& options,
                       Report::Category& counts) {
  std::string wrong = ready.error;
  try {
    if (!wrong.empty()) {
      ++counts.failed;
      return wrong;
    }
    launch_and_judge(device, arena, ready, options, counts, wrong);
  } catch (const CudaError&) {
    ++counts.failed;
    throw;
  } catch (const Error& error) {
    ++counts.failed;
    wrong += error.what();
  }
  return wrong;
}

}  // namespace

std::string run_case(tools::Device& device, Arena& arena, const Case& wanted, std::uint64_t seed,
                     const RunOptions& options, Report::Category& counts) {
  return outcome_of(device, arena, prepare(wanted, seed, device.properties().target, options.limits), options, counts);
}

std::string judge(tools::Device& device, const ConvSpec& spec, const Reference& reference, const LaunchArgs& args,
                  const Arena& arena, Report::Category& counts) {
  ++counts.launches;
  device.synchronize();
  std::string wrong;
  const auto add = [&wrong](const std::string& what) { wrong += wrong.empty() ? what : "; " + what; };
  if (output_count(spec) > 0) {
    const std::vector<float> actual = tools::results_at(device, spec, args, reference.positions);
    const check::Comparison result =
        check::compare(spec, reference.kind, reference.positions, reference.expected, actual);
    counts.outputs += result.compared;
    if (!result.passed()) add(result.text());
    if (!result.exact && result.worst_ratio > counts.worst_ratio) {
      counts.worst_ratio = result.worst_ratio;
      counts.worst_case = to_string(spec);
    }
    const std::int64_t unwritten = tools::count_nan_results(device, spec, args);
    if (unwritten > 0) add(fmt::format("{} outputs are NaN or were not written", unwritten));
  }
  if (const std::string damage = arena.damage(); !damage.empty()) add(damage);
  // After the launch: shows data that were made wrong, and inputs that the kernel overwrote.
  if (const std::string difference = input_difference(device, spec, reference.data, args); !difference.empty())
    add(difference);
  if (!wrong.empty()) ++counts.failed;
  return wrong;
}

Report::Category run_cases(tools::Device& device, const std::string& category, const std::vector<Case>& cases,
                           const RunOptions& options) {
  Report::Category counts;
  Arena arena(device, options.memory);
  std::size_t shown = 0;
  Preparation preparation(cases, device.properties().target, options);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Prepared ready = preparation.take();
    std::string wrong;
    bool context_is_lost = false;
    try {
      wrong = outcome_of(device, arena, ready, options, counts);
    } catch (const CudaError& error) {
      wrong = error.what();
      context_is_lost = true;
    }
    if (wrong.empty()) continue;
    if (++shown <= kMostShown || context_is_lost) {
      ADD_FAILURE() << category << ", " << ready.wanted->name << "\n  " << to_string(ready.wanted->spec) << '\n'
                    << (ready.kernel ? ready.kernel->plan() : std::string()) << wrong;
    }
    if (context_is_lost) {
      ADD_FAILURE() << category << ": given up after " << i + 1 << " of " << cases.size()
                    << " cases, because the driver reported an error";
      break;
    }
  }
  if (shown > kMostShown) ADD_FAILURE() << category << ": " << shown - kMostShown << " more are wrong";
  Report::get().add(category, counts);
  return counts;
}

}  // namespace jitconv::test
