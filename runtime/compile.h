// The seams behind jitconv::compile() that tools and tests use: compiling a given plan, and where the cache lives.
#pragma once

#include "cache/store.h"
#include "codegen/plan.h"
#include "codegen/source.h"
#include "jitconv/kernel.h"
#include "jitconv/prepare.h"
#include "runtime/backend.h"

namespace jitconv::runtime {

/// A kernel, and where it was found.
struct Found {
  Kernel kernel;
  Origin origin;
};

/// compile() for `target`, which also says where the kernel came from. `is_current_device`: candidates may be measured.
Found find_or_compile(const ConvSpec& spec, const Target& target, const CompileOptions& options,
                      bool is_current_device = false);

/// compile() from a plan on: generate, key, look up or compile, store. Bypasses the in-memory registry.
/// Touches no driver; the image loads at first launch or by prepare().
Kernel compile_plan(const codegen::ConvPlan& plan, const CompileOptions& options = {});

/// As above on a backend of the caller's, which must outlive the kernel.
Kernel compile_plan(const codegen::ConvPlan& plan, const CompileOptions& options, const Backend& backend);

/// What compile() makes of its plan: compile_plan(), except that a tensor plan of which the compiler made less than the
/// model counts on (see defect()) gives way to the next candidate without such a defect. Among a few; if none is
/// better, `best` is kept, which is right all the same. The kernel's notes say what was rejected.
Kernel compile_best(const codegen::ConvPlan& best, const CompileOptions& options = {});
Kernel compile_best(const codegen::ConvPlan& best, const CompileOptions& options, const Backend& backend);

/// Loads the kernel on the current device now.
void prepare(const Kernel& kernel);

/// The key compile_plan() would look up.
cache::Key cache_key(const codegen::KernelSource& source, const Target& target, const CompileOptions& options);

/// The process-wide store, configured from the environment at first use.
cache::Store& disk_cache();

const codegen::ConvPlan& plan_of(const Kernel& kernel);
const codegen::KernelSource& source_of(const Kernel& kernel);

}  // namespace jitconv::runtime
