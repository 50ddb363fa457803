// prepare(): one spec after the other in each of several threads. The calling thread compiles nothing: it waits for
// what is finished, loads it if it is for the current device, and reports it.
#include "jitconv/prepare.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>
#include <unordered_set>

#include "codegen/spec_fields.h"
#include "runtime/compile.h"
#include "runtime/driver.h"
#include "runtime/fork_guard.h"

namespace jitconv {
namespace {

/// What became of one spec: a kernel or an error.
struct Result {
  std::optional<Kernel> kernel;
  std::exception_ptr error;
  Origin origin = Origin::failed;

  void fail() noexcept { *this = {std::nullopt, std::current_exception(), Origin::failed}; }
};

struct SpecHash {
  std::size_t operator()(const ConvSpec* spec) const noexcept { return codegen::hash_value(*spec); }
};
struct SpecEqual {
  bool operator()(const ConvSpec* a, const ConvSpec* b) const noexcept { return *a == *b; }
};

/// The indices of `specs`, repetitions last: a thread that waits for another's compilation compiles nothing itself.
std::vector<std::size_t> repetitions_last(std::span<const ConvSpec> specs) {
  std::vector<std::size_t> order(specs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::unordered_set<const ConvSpec*, SpecHash, SpecEqual> seen;
  std::stable_partition(order.begin(), order.end(),
                        [&](std::size_t index) { return seen.insert(&specs[index]).second; });
  return order;
}

/// The specs of one call, dealt out to threads, and their results as they come back.
class Jobs {
 public:
  Jobs(std::span<const ConvSpec> specs, const Target& target, const CompileOptions& options)
      : specs_(specs), target_(target), options_(options), order_(repetitions_last(specs)), results_(specs.size()) {
    finished_.reserve(specs.size());  // so that finish() needs no memory
  }

  std::size_t size() const { return specs_.size(); }
  Result& result(std::size_t index) { return results_[index]; }

  /// Compiles one spec after the other until none is left. For several threads.
  void run() noexcept {
    while (const std::optional<std::size_t> index = begin_next()) {
      compile_one(*index);
      finish(*index);
    }
  }

  /// Leaves out all specs that no thread has begun.
  void stop() noexcept {
    const std::lock_guard lock(mutex_);
    begun_ = order_.size();
  }

  /// The index of the `count`-th spec that is finished; waits for it.
  std::size_t wait_for(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return finished_.size() > count; });
    return finished_[count];
  }

 private:
  std::optional<std::size_t> begin_next() noexcept {
    const std::lock_guard lock(mutex_);
    return begun_ < order_.size() ? std::optional(order_[begun_++]) : std::nullopt;
  }

  void compile_one(std::size_t index) noexcept {
    Result& result = results_[index];
    try {
      runtime::Found found = runtime::find_or_compile(specs_[index], target_, options_);
      result.origin = found.origin;
      result.kernel = std::move(found.kernel);
    } catch (...) {
      result.fail();
    }
  }

  void finish(std::size_t index) noexcept {
    const std::lock_guard lock(mutex_);
    finished_.push_back(index);
    changed_.notify_one();
  }

  const std::span<const ConvSpec> specs_;
  const Target& target_;
  const CompileOptions& options_;
  const std::vector<std::size_t> order_;
  std::vector<Result> results_;  ///< each is the worker's until it is finished, then the calling thread's

  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t begun_ = 0;  ///< of order_
  std::vector<std::size_t> finished_;
};

/// The threads that work on `jobs`, from constructor to destructor.
class Workers {
 public:
  Workers(Jobs& jobs, std::size_t count) : jobs_(jobs) {
    threads_.reserve(count);
    try {
      while (threads_.size() < count) threads_.emplace_back([&jobs] { jobs.run(); });
    } catch (const std::exception&) {  // no more threads, or no memory for them
      // Fewer threads take longer. Without any, this one does the work before it reports.
      if (threads_.empty()) jobs.run();
    }
  }
  ~Workers() {
    jobs_.stop();
    for (std::thread& thread : threads_) thread.join();
  }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

 private:
  Jobs& jobs_;
  std::vector<std::thread> threads_;
};

std::size_t thread_count(int asked, std::size_t specs) {
  if (asked < 0) {
    throw SpecError(ErrorCode::invalid_argument, "threads",
                    fmt::format("threads is {}, must be at least 0, where 0 is one for each core", asked));
  }
  const unsigned most = asked > 0 ? static_cast<unsigned>(asked) : std::max(1u, std::thread::hardware_concurrency());
  return std::min<std::size_t>(most, specs);
}

/// The kernels in the order of the specs, or the first error.
std::vector<Kernel> kernels_of(Jobs& jobs) {
  std::vector<Kernel> kernels;
  kernels.reserve(jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    Result& result = jobs.result(i);
    if (result.error) std::rethrow_exception(result.error);
    kernels.push_back(std::move(*result.kernel));
  }
  return kernels;
}

void load(Result& result) noexcept {
  if (!result.kernel) return;
  try {
    runtime::prepare(*result.kernel);
  } catch (...) {
    result.fail();
  }
}

std::vector<Kernel> prepare(std::span<const ConvSpec> specs, const Target& target, const PrepareOptions& options,
                            bool loads) {
  Jobs jobs(specs, target, options.compile);
  {
    const Workers workers(jobs, thread_count(options.threads, specs.size()));
    for (std::size_t done = 0; done < specs.size(); ++done) {
      const std::size_t index = jobs.wait_for(done);
      Result& result = jobs.result(index);
      if (loads) load(result);
      if (options.progress) options.progress({done + 1, specs.size(), index, result.origin});
    }
  }
  return kernels_of(jobs);
}

}  // namespace

std::vector<Kernel> prepare(std::span<const ConvSpec> specs, const Target& target, const PrepareOptions& options) {
  runtime::refuse_after_fork();
  return prepare(specs, target, options, /*loads=*/false);
}

std::vector<Kernel> prepare(std::span<const ConvSpec> specs, const PrepareOptions& options) {
  const runtime::Driver& driver = runtime::Driver::get();
  const int device = driver.ensure_context();
  return prepare(specs, driver.target_of(device), options, /*loads=*/true);
}

}  // namespace jitconv
