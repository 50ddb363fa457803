// Choices of tuning: which candidate of a spec was the fastest. Kept in memory and in the disk cache, found by spec,
// target and generator. Does not measure: tune.cpp decides what is measured, kernel_timer.cpp measures.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "codegen/plan.h"
#include "jitconv/tune.h"

namespace jitconv::runtime {

/// What JITCONV_TUNE asks compile() for.
enum class TuningMode {
  off,
  saved,    ///< takes choices that are remembered
  measure,  ///< and measures where there is none
};
/// What JITCONV_TUNE says. An unreadable value means off, with a warning.
TuningMode tuning_mode();

/// The plan that was chosen for the spec; none if nothing is remembered, or if no candidate is it any more.
std::optional<codegen::ConvPlan> remembered_choice(const ConvSpec& spec, const Target& target);

/// Remembers it for its spec and target.
void remember_choice(const codegen::ConvPlan& plan);

/// Milliseconds of a launch of each kernel; none for one that cannot be launched.
using TimeKernels = std::function<std::vector<std::optional<double>>(std::span<const Kernel> kernels, int launches)>;

/// Measures candidates with `time_kernels`, remembers the fastest and returns its kernel. tune() without a device.
Kernel tune(const ConvSpec& spec, const Target& target, const TuneOptions& options, const TimeKernels& time_kernels);

/// What compile() builds: the model's plan, unless the environment asks for choices of tuning. Candidates are measured
/// only if the target `is_current_device`; what keeps it from that is a warning.
codegen::ConvPlan plan_to_build(const ConvSpec& spec, const Target& target, const CompileOptions& options = {},
                                bool is_current_device = false);

}  // namespace jitconv::runtime
