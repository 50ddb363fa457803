// The order of events for one convolution: compile, allocate, launch once into poison, check, time.
#include "tools/measure.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/source.h"
#include "runtime/compile.h"
#include "runtime/nvrtc.h"
#include "tools/stopwatch.h"

namespace jitconv::tools {
namespace {

/// Tensors this many times as large as L2 leave nothing of use in it between launches.
constexpr double kBeyondL2 = 4;

void check_and_time(Device& device, const MeasureOptions& options, Measurement& result) {
  const Kernel& kernel = result.compiled->kernel;
  if (check::element_count(result_shape(result.named.spec)) == 0) {
    result.note = "no outputs: nothing to launch";
    return;
  }
  result.note = lack_of_memory(device, result.named.spec, kernel.workspace_bytes());
  if (!result.note.empty()) {
    result.outcome = Outcome::skipped;
    return;
  }
  Problem problem(device, result.named.spec, options.kind, options.seed);
  if (!problem.data_agree()) throw InternalError("the device's test data differ from the host's");
  device.synchronize();
  const Stopwatch watch;
  device.prepare(kernel);
  result.load_ms = watch.ms();
  if (options.check) {
    const LaunchArgs arguments = problem.arguments(kernel);
    problem.poison();
    device.launch(kernel, arguments);
    device.synchronize();
    result.check = problem.check(options.check_budget);
    if (!result.check->passed()) {
      result.outcome = Outcome::wrong;
      result.exit = kCheckFailed;
      result.note = result.check->text();
    }
  }
  if (options.repeat > 0) result.timing = time_kernel(device, problem, kernel, options);
}

}  // namespace

Compiled compile_timed(const ConvSpec& spec, const Target& target, bool cold) {
  const Stopwatch first;
  Kernel kernel = runtime::compile_best(codegen::make_plan(spec, target));
  const double first_ms = first.ms();
  Compiled result{runtime::plan_of(kernel), kernel, {}, {}};
  (result.kernel.from_cache() ? result.warm_ms : result.cold_ms) = first_ms;

  const Stopwatch again;
  const codegen::ConvPlan plan_again = codegen::make_plan(spec, target);
  if (!result.warm_ms && runtime::disk_cache().config().mode != cache::Mode::off) {
    const Kernel second = runtime::compile_best(plan_again);
    if (second.from_cache()) result.warm_ms = again.ms();
  } else if (!result.cold_ms && cold) {
    const codegen::KernelSource source = codegen::generate(plan_again);
    if (!source.entries.empty()) {
      runtime::compile_source(source.text, source.entries[0].name + ".cu", source.options);
      result.cold_ms = again.ms();
    }
  }
  return result;
}

std::string lack_of_memory(const Device& device, const ConvSpec& spec, std::int64_t workspace_bytes) {
  // The margin is for what flushes L2, for samples and for the driver.
  const std::int64_t margin = 3 * device.properties().target.l2_bytes + (std::int64_t{64} << 20);
  const std::int64_t needed = Problem::bytes_needed(spec, workspace_bytes) + margin, free = device.free_bytes();
  if (needed <= free) return {};
  return fmt::format("needs {:.1f} GB, {:.1f} GB are free", static_cast<double>(needed) * 1e-9,
                     static_cast<double>(free) * 1e-9);
}

double Timing::median() const {
  if (ms.empty()) return 0;
  const std::size_t half = ms.size() / 2;
  return ms.size() % 2 == 1 ? ms[half] : (ms[half - 1] + ms[half]) / 2;
}

Timing time_kernel(Device& device, Problem& problem, const Kernel& kernel, const MeasureOptions& options) {
  Timing timing;
  const std::int64_t l2_bytes = device.properties().target.l2_bytes;
  timing.l2_flushed = codegen::work(problem.spec()).bytes < kBeyondL2 * static_cast<double>(l2_bytes);
  Buffer scratch;
  std::function<void()> flush;
  if (timing.l2_flushed) {
    scratch = Buffer(device, 2 * l2_bytes);
    flush = [&] { device.set_bytes(scratch.data(), 0, scratch.bytes()); };
  }
  const LaunchArgs args = problem.arguments(kernel);
  const auto launch = [&] { device.launch(kernel, args); };
  for (int i = 0; i < options.warmup; ++i) launch();
  timing.ms = device.time_ms(flush, launch, options.repeat);
  std::sort(timing.ms.begin(), timing.ms.end());
  return timing;
}

Measurement measure(Device& device, const NamedSpec& named, const MeasureOptions& options, const Ceilings& ceilings) {
  Measurement result;
  result.named = named;
  result.work = codegen::work(named.spec);
  try {
    result.compiled = compile_timed(named.spec, device.properties().target, options.cold);
    const double flop_per_s = ceilings.flop_per_s(result.compiled->plan);
    result.floor_ms = floor_ms(result.work, ceilings.bytes_per_s, flop_per_s);
    check_and_time(device, options, result);
  } catch (const CudaError&) {
    throw;
  } catch (const Error& error) {
    result.outcome = Outcome::failed;
    result.exit = exit_code(error.code());
    result.note = error.what();
  }
  return result;
}

}  // namespace jitconv::tools
