// How a ConvSpec becomes a Kernel: the place to start reading. Each step is one type and one call,
//
//   ConvSpec -> ConvPlan -> KernelSource -> Key -> disk cache or compiler -> image -> Kernel
//
// and lives in a folder of its own: codegen/ (plan, source), cache/ (key, store), and the rest of runtime/. Which
// compiler makes the image and what runs it is the Backend's business: NVRTC and a GPU, or host/ and this machine's
// CPU.
#include "runtime/compile.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <set>
#include <vector>

#include "cache/key.h"
#include "codegen/cost_text.h"
#include "runtime/backend.h"
#include "runtime/compiler_use.h"
#include "runtime/driver.h"
#include "runtime/dump.h"
#include "runtime/entry_description.h"
#include "runtime/env.h"
#include "runtime/fork_guard.h"
#include "runtime/kernel_state.h"
#include "runtime/log.h"
#include "runtime/progress.h"
#include "runtime/ptxas_log.h"
#include "runtime/registry.h"

namespace jitconv {

Kernel compile(const ConvSpec& spec, const Target& target, const CompileOptions& options) {
  runtime::refuse_after_fork();
  const runtime::RegistryKey asked{spec, target, options};
  if (auto kernel = runtime::registry().find(asked)) {
    runtime::log_memory_hit(spec, target);
    return *kernel;
  }

  validate(spec);
  return runtime::registry().find_or_build(asked, [&] {
    const runtime::Stopwatch watch;
    const codegen::ConvPlan plan = codegen::make_plan(spec, target);
    runtime::log_plan(plan, watch);
    const auto build = [&] { return runtime::compile_best(plan, options); };
    // Specs that differ only in what cannot matter share a kernel: the one of the plan's canonical spec.
    const runtime::RegistryKey canonical{plan.spec, target, options};
    return canonical == asked ? build() : runtime::registry().find_or_build(canonical, build);
  });
}

Kernel compile(const ConvSpec& spec, const CompileOptions& options) {
  const runtime::Driver& driver = runtime::Driver::get();
  const int device = driver.ensure_context();
  Kernel kernel = compile(spec, driver.target_of(device), options);
  kernel.state().prepare();
  return kernel;
}

namespace runtime {
namespace {

std::atomic<std::uint64_t> compilations{0};

void require_supported(const CompileOptions& options, const Target& target) {
  if (!options.counters || target.execution == Execution::host) return;
  throw SpecError(ErrorCode::unsupported, "counters",
                  fmt::format("counters is true, must be false for {}: only host execution counts", target.arch()));
}

cache::Key cache_key(const Backend& backend, const codegen::KernelSource& source, const Target& target,
                     const CompileOptions& options) {
  const CompilerIdentity compiler = backend.compiler();
  return cache::make_key({std::string(backend.format().key_prefix) + target.arch(), compiler.version, compiler.build_id,
                          backend.options(source, options),
                          std::string(codegen::generator_fingerprint()) + std::string(backend.fingerprint()),
                          source.text});
}

/// The backend's compiler, then the cache, which may fail to keep the image. `key` becomes that of the compiler which
/// made the image: only then is it sure which one that is.
Binary compile_and_store(const Backend& backend, const codegen::ConvPlan& plan, const codegen::KernelSource& source,
                         cache::Key& key, const CompileOptions& options) {
  if (compilation_forbidden()) {
    throw CompileError(
        ErrorCode::compile_failed,
        fmt::format("JITCONV_NO_COMPILE is set and the cache has no usable image under key {} for {}{}: {}", key.hex(),
                    backend.format().key_prefix, plan.target.arch(), to_string(plan.spec)));
  }
  log_disk_miss(source, key.hex(), disk_cache().config());
  compilations.fetch_add(1, std::memory_order_relaxed);
  const CompilerUse use;
  const Stopwatch watch;
  try {
    Binary binary = backend.compile(source, backend.options(source, options));
    key = cache_key(backend, source, plan.target, options);
    log_compilation(source, key.hex(), backend.compiler(), watch);
    disk_cache().save(
        {key, backend.format().kind, binary.log, binary.image, describe_entry(backend, plan, source, options)});
    return binary;
  } catch (const CompileError& error) {
    throw CompileError(error.code(), fmt::format("{}\n  spec: {}", error.what(), to_string(plan.spec)), error.log(),
                       error.numbered_source(), error.options());
  }
}

/// All of a kernel but its plan.
struct Compiled {
  codegen::KernelSource source;
  std::optional<cache::Key> key;  ///< none where nothing is launched
  Binary binary;
};

Compiled load_or_compile(const codegen::ConvPlan& plan, const CompileOptions& options, const Backend& backend) {
  require_supported(options, plan.target);
  Compiled result{codegen::generate(plan), std::nullopt, {}};
  const codegen::KernelSource& source = result.source;
  if (source.entries.empty()) return result;  // no outputs, so nothing to launch
  result.key = cache_key(backend, source, plan.target, options);
  dump(source, *result.key, ".cu", source.text);
  const Stopwatch watch;
  if (auto entry = disk_cache().load(*result.key)) {
    result.binary = {std::move(entry->payload), std::move(entry->metadata), /*from_cache=*/true};
    log_disk_hit(source, result.key->hex(), watch);
  } else {
    result.binary = compile_and_store(backend, plan, source, *result.key, options);
  }
  dump(source, *result.key, backend.format().suffix, result.binary.image);
  return result;
}

Kernel make_kernel(codegen::ConvPlan plan, Compiled compiled, const CompileOptions& options, const Backend& backend) {
  if (!compiled.key) {
    return Kernel(std::make_shared<detail::KernelState>(backend, std::move(plan), std::move(compiled.source),
                                                        std::string(), Binary{}, nullptr));
  }
  const auto recompile = [key = *compiled.key, options](const detail::KernelState& state) {
    cache::Key current = key;
    return compile_and_store(state.backend, state.plan, state.source, current, options);
  };
  return Kernel(std::make_shared<detail::KernelState>(backend, std::move(plan), std::move(compiled.source),
                                                      compiled.key->hex(), std::move(compiled.binary), recompile));
}

/// The candidates after `best` that might have been chosen, cheapest first. Those that differ from an earlier one only
/// in how tiles and steps are dealt out are left out: the compiler would make the same of them.
std::vector<codegen::ConvPlan> other_candidates(const codegen::ConvPlan& best, std::size_t most) {
  const auto body = [](const codegen::ConvPlan& plan) {
    return std::pair(plan.family(), codegen::functions_of(plan.family()).body(plan.convolution()));
  };
  std::set<std::pair<codegen::Family, std::vector<int>>> seen = {body(best)};
  std::vector<codegen::ConvPlan> others;
  for (codegen::ConvPlan& plan : codegen::enumerate_plans(best.spec, best.target, SIZE_MAX)) {
    if (others.size() == most) break;
    if (!codegen::uses_tensor_cores(plan.family())) continue;
    if (seen.insert(body(plan)).second) others.push_back(std::move(plan));
  }
  return others;
}

}  // namespace

Kernel compile_plan(const codegen::ConvPlan& plan, const CompileOptions& options) {
  return compile_plan(plan, options, backend_for(plan.target));
}

Kernel compile_plan(const codegen::ConvPlan& plan, const CompileOptions& options, const Backend& backend) {
  return make_kernel(plan, load_or_compile(plan, options, backend), options, backend);
}

Kernel compile_best(const codegen::ConvPlan& best, const CompileOptions& options) {
  return compile_best(best, options, backend_for(best.target));
}

Kernel compile_best(const codegen::ConvPlan& best, const CompileOptions& options, const Backend& backend) {
  constexpr std::size_t kMostOthers = 4;  // each costs a compilation
  Compiled first = load_or_compile(best, options, backend);
  codegen::ConvPlan plan = best;
  if (!codegen::uses_tensor_cores(best.family()))
    return make_kernel(std::move(plan), std::move(first), options, backend);

  const std::string family(to_string(best.family()));
  std::vector<codegen::Note> notes = best.notes;
  // Whether the kernel is what the plan says; else a note says why not.
  const auto is_sound = [&notes](const codegen::ConvPlan& candidate, const Compiled& compiled) {
    const std::optional<std::string> reason = defect(compiled.binary.log, compiled.source.entries);
    if (reason) {
      notes.push_back({std::string(to_string(candidate.family())),
                       fmt::format("the compiler spoils the candidate modelled at {}: {}",
                                   codegen::cost_text(candidate.cost), *reason)});
      log(LogLevel::debug, notes.back().text);
    }
    return !reason;
  };
  if (is_sound(best, first)) return make_kernel(std::move(plan), std::move(first), options, backend);

  try {
    for (codegen::ConvPlan& other : other_candidates(best, kMostOthers)) {
      Compiled compiled = load_or_compile(other, options, backend);
      if (!is_sound(other, compiled)) continue;
      other.notes = std::move(notes);
      return make_kernel(std::move(other), std::move(compiled), options, backend);
    }
  } catch (const CompileError& error) {
    // There is a kernel, and a slow one is better than none: compiling may be forbidden.
    notes.push_back({family, fmt::format("no other candidate could be compiled: {}", error.what())});
  }
  notes.push_back({family, "slow path: the first candidate is used as it is"});
  plan.notes = std::move(notes);
  return make_kernel(std::move(plan), std::move(first), options, backend);
}

cache::Key cache_key(const codegen::KernelSource& source, const Target& target, const CompileOptions& options) {
  return cache_key(backend_for(target), source, target, options);
}

void prepare(const Kernel& kernel) { kernel.state().prepare(); }

cache::Store& disk_cache() {
  const auto warn = [](const std::string& message) { log(LogLevel::warn, message); };
  static cache::Store* const store = new cache::Store(cache::store_config_from_environment(warn), warn);
  return *store;
}

const codegen::ConvPlan& plan_of(const Kernel& kernel) { return kernel.state().plan; }
const codegen::KernelSource& source_of(const Kernel& kernel) { return kernel.state().source; }

}  // namespace runtime

std::size_t release_unused_kernels() {
  runtime::refuse_after_fork();
  return runtime::registry().drop_unheld();
}

Target current_target() {
  const runtime::Driver& driver = runtime::Driver::get();
  const int device = driver.current_device();
  return driver.target_of(device < 0 ? 0 : device);
}

Statistics statistics() {
  const cache::StoreStatistics disk = runtime::disk_cache().statistics();
  return {runtime::registry().hits(),
          disk.hits,
          disk.misses,
          runtime::compilations.load(std::memory_order_relaxed),
          disk.errors + disk.corrupt,
          runtime::registry().size()};
}

const char* version() { return JITCONV_VERSION; }

}  // namespace jitconv
