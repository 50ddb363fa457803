// How a ConvSpec becomes a Kernel: the place to start reading. Each step is one type and one call,
//
//   ConvSpec -> ConvPlan -> KernelSource -> Key -> disk cache or compiler -> image -> Kernel
//
// The first arrow is codegen/'s make_plan(), or what tuning has chosen; build() in build.cpp walks the others. Which
// compiler makes the image and what runs it is the Backend's business: NVRTC and a GPU, or host/ and this machine's
// CPU.
#include "runtime/compile.h"

#include "runtime/build.h"
#include "runtime/driver.h"
#include "runtime/fork_guard.h"
#include "runtime/kernel_access.h"
#include "runtime/kernel_state.h"
#include "runtime/progress.h"
#include "runtime/registry.h"
#include "runtime/tuning.h"

namespace jitconv {

runtime::Found runtime::find_or_compile(const ConvSpec& spec, const Target& target, const CompileOptions& options,
                                        bool is_current_device) {
  refuse_after_fork();
  const RegistryKey asked{spec, target, options};
  if (auto kernel = registry().find(asked)) {
    log_memory_hit(spec, target);
    return {*std::move(kernel), Origin::memory};
  }

  validate(spec);
  bool built = false;
  Kernel kernel = registry().find_or_build(asked, [&] {
    const Stopwatch watch;
    const codegen::ConvPlan plan = plan_to_build(spec, target, options, is_current_device);
    log_plan(plan, watch);
    const auto build = [&] {
      built = true;
      return compile_best(plan, options);
    };
    // Specs that differ only in what cannot matter share a kernel: the one of the plan's canonical spec.
    const RegistryKey canonical{plan.spec, target, options};
    return canonical == asked ? build() : registry().find_or_build(canonical, build);
  });
  if (!built) return {std::move(kernel), Origin::memory};
  const Origin origin = kernel.from_cache() ? Origin::disk : Origin::compiler;
  return {std::move(kernel), origin};
}

Kernel compile(const ConvSpec& spec, const Target& target, const CompileOptions& options) {
  return runtime::find_or_compile(spec, target, options).kernel;
}

Kernel compile(const ConvSpec& spec, const CompileOptions& options) {
  const runtime::Driver& driver = runtime::Driver::get();
  const int device = driver.ensure_context();
  Kernel kernel = runtime::find_or_compile(spec, driver.target_of(device), options, /*is_current_device=*/true).kernel;
  runtime::prepare(kernel);
  return kernel;
}

namespace runtime {

Kernel compile_plan(const codegen::ConvPlan& plan, const CompileOptions& options) {
  return compile_plan(plan, options, backend_for(plan.target));
}

Kernel compile_plan(const codegen::ConvPlan& plan, const CompileOptions& options, const Backend& backend) {
  return make_kernel(plan, build(plan, options, backend), options, backend);
}

void prepare(const Kernel& kernel) { detail::KernelAccess::state(kernel).prepare(); }

const codegen::ConvPlan& plan_of(const Kernel& kernel) { return detail::KernelAccess::state(kernel).plan; }
const codegen::KernelSource& source_of(const Kernel& kernel) { return detail::KernelAccess::state(kernel).source; }

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
  return {runtime::registry().hits(), disk.hits, disk.misses, runtime::compilations(), disk.errors + disk.corrupt,
          runtime::registry().size()};
}

const char* version() { return JITCONV_VERSION; }

}  // namespace jitconv
