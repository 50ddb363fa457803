// See progress.h.
#include "runtime/progress.h"

#include <fmt/format.h>

#include "runtime/log.h"

namespace jitconv::runtime {
namespace {

std::string name_of(const codegen::KernelSource& source, const std::string& key) {
  return fmt::format("{}, key {}", source.name(), key);
}

}  // namespace

void log_memory_hit(const ConvSpec& spec, const Target& target) {
  if (!log_enabled(LogLevel::info)) [[likely]]
    return;
  log(LogLevel::info, fmt::format("memory hit for {}: {}", target.arch(), to_string(spec)));
}

void log_plan(const codegen::ConvPlan& plan, const Stopwatch& watch) {
  if (!log_enabled(LogLevel::info)) return;
  const double ms = watch.ms();
  log(LogLevel::info, fmt::format("planned in {:.1f} ms for {}, family {}: {}", ms, plan.target.arch(),
                                  to_string(plan.family()), to_string(plan.spec)));
  for (const codegen::Note& note : plan.notes) log(LogLevel::debug, fmt::format("plan: {}: {}", note.topic, note.text));
}

void log_disk_hit(const codegen::KernelSource& source, const std::string& key, const Stopwatch& watch) {
  if (!log_enabled(LogLevel::info)) return;
  log(LogLevel::info, fmt::format("disk cache hit in {:.1f} ms: {}", watch.ms(), name_of(source, key)));
}

void log_disk_miss(const codegen::KernelSource& source, const std::string& key, const cache::StoreConfig& cache) {
  if (!log_enabled(LogLevel::debug)) return;
  const std::string reason = cache.mode == cache::Mode::off
                                 ? "the disk cache is off"
                                 : fmt::format("the disk cache in {} has no usable entry", cache.root);
  log(LogLevel::debug, fmt::format("{}: {}", reason, name_of(source, key)));
}

void log_compilation(const codegen::KernelSource& source, const std::string& key, const CompilerIdentity& compiler,
                     const Stopwatch& watch) {
  if (!log_enabled(LogLevel::info)) return;
  log(LogLevel::info, fmt::format("no cache hit, compiled in {:.1f} ms with {} ({}): {}", watch.ms(), compiler.path,
                                  compiler.version, name_of(source, key)));
}

void log_load(const codegen::KernelSource& source, int device, const Stopwatch& watch) {
  if (!log_enabled(LogLevel::info)) return;
  log(LogLevel::info, fmt::format("loaded in {:.1f} ms on device {}: {}", watch.ms(), device, source.name()));
}

}  // namespace jitconv::runtime
