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
/// Of an unreadable value: off, with a warning.
TuningMode tuning_mode();

/// The plan that was chosen for the spec; none if nothing is remembered, or if no candidate is it any more.
std::optional<codegen::ConvPlan> remembered_choice(const ConvSpec& spec, const Target& target);

/// Remembers it for its spec and target.
void remember_choice(const codegen::ConvPlan& plan);

/// What compile() builds: the remembered choice if the environment asks for it, else the model's.
codegen::ConvPlan plan_to_build(const ConvSpec& spec, const Target& target);

/// Milliseconds of a launch of each kernel; none for one that cannot be launched.
using TimeKernels = std::function<std::vector<std::optional<double>>(std::span<const Kernel> kernels, int launches)>;

/// Measures candidates with `time_kernels`, remembers the fastest and returns its kernel. tune() without a device.
Kernel tune(const ConvSpec& spec, const Target& target, const TuneOptions& options, const TimeKernels& time_kernels);

/// Before compile() for the current device: measures if JITCONV_TUNE=1 and nothing is remembered. What keeps it from
/// that is a warning.
void tune_if_asked(const ConvSpec& spec, const Target& target, const CompileOptions& options);

}  // namespace jitconv::runtime
