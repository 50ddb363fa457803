// Walks from a plan to a kernel:
//
//   ConvPlan -> KernelSource -> Key -> disk cache or compiler -> image -> Kernel
#include "runtime/build.h"

#include <fmt/format.h>

#include <atomic>

#include "runtime/compile.h"
#include "runtime/compiler_use.h"
#include "runtime/dump.h"
#include "runtime/entry_description.h"
#include "runtime/env.h"
#include "runtime/kernel_access.h"
#include "runtime/kernel_state.h"
#include "runtime/log.h"
#include "runtime/progress.h"

namespace jitconv::runtime {
namespace {

std::atomic<std::uint64_t> compiler_calls{0};

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
  compiler_calls.fetch_add(1, std::memory_order_relaxed);
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

}  // namespace

Built build(const codegen::ConvPlan& plan, const CompileOptions& options, const Backend& backend) {
  require_supported(options, plan.target);
  Built result{codegen::generate(plan), std::nullopt, {}};
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

Kernel make_kernel(codegen::ConvPlan plan, Built built, const CompileOptions& options, const Backend& backend) {
  if (!built.key) {
    return detail::KernelAccess::make(std::make_shared<detail::KernelState>(
        backend, std::move(plan), std::move(built.source), std::string(), Binary{}, nullptr));
  }
  const auto recompile = [key = *built.key, options](const detail::KernelState& state) {
    cache::Key current = key;
    return compile_and_store(state.backend, state.plan, state.source, current, options);
  };
  return detail::KernelAccess::make(std::make_shared<detail::KernelState>(
      backend, std::move(plan), std::move(built.source), built.key->hex(), std::move(built.binary), recompile));
}

cache::Key cache_key(const codegen::KernelSource& source, const Target& target, const CompileOptions& options) {
  return cache_key(backend_for(target), source, target, options);
}

cache::Store& disk_cache() {
  const auto warn = [](const std::string& message) { log(LogLevel::warn, message); };
  static cache::Store* const store = new cache::Store(cache::store_config_from_environment(warn), warn);
  return *store;
}

std::uint64_t compilations() { return compiler_calls.load(std::memory_order_relaxed); }

}  // namespace jitconv::runtime
