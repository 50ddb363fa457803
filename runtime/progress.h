// What the log says of a kernel on its way from spec to GPU: a line for each step, with the time it took, at level
// info; the reasons at level debug. Formats nothing unless it is printed.
#pragma once

#include <string>

#include "cache/store.h"
#include "codegen/plan.h"
#include "codegen/source.h"
#include "runtime/image.h"
#include "runtime/stopwatch.h"

namespace jitconv::runtime {

void log_memory_hit(const ConvSpec& spec, const Target& target);
/// With the notes of the plan, which say what was rejected.
void log_plan(const codegen::ConvPlan& plan, const Stopwatch& watch);
void log_disk_hit(const codegen::KernelSource& source, const std::string& key, const Stopwatch& watch);
/// Why an image has to be compiled, before that is done.
void log_disk_miss(const codegen::KernelSource& source, const std::string& key, const cache::StoreConfig& cache);
void log_compilation(const codegen::KernelSource& source, const std::string& key, const CompilerIdentity& compiler,
                     const Stopwatch& watch);
void log_load(const codegen::KernelSource& source, int device, const Stopwatch& watch);

}  // namespace jitconv::runtime
