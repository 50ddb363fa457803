// The reduce pass's row of the table in families.cpp, and how families that split a reduction add it to a plan.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/families.h"
#include "codegen/plan.h"
#include "codegen/text/emitter.h"
#include "codegen/text/template_text.h"

namespace jitconv::codegen {

FamilyFunctions reduce_pass();

/// Adds the kernel that adds up the partial sums of a weight gradient, of dw and db, in a new region of scratch.
/// `asked` is the gradient's problem, also where the plan's kernel computes it by another one.
void add_gradient_reduction(ConvPlan& plan, const Problem& asked, std::int64_t splits, const GradientSums& sums);

/// Lets the plan's convolution write partial sums, `stride` floats from one split's to the next's, to a new region of
/// scratch, and adds the kernel that adds them up and applies the epilogue. It may start before the convolution ends.
void add_reduction(ConvPlan& plan, int split_k, std::int64_t stride, Relu relu);

/// Lets the pass behind a sub-pixel convolution, which adds partial sums or is added here, store the pixels of the
/// `gradient` that its phases are.
void add_interleaving(ConvPlan& plan, const Problem& gradient);

/// Picoseconds of that pass, if its sums are not split.
std::int64_t interleaving_cost(const Problem& gradient, const Problem& sub_pixel, const FmaCosts& costs);

namespace reduce {
KernelText emit(const KernelPlan& kernel, std::string_view name);

/// What emit(), emit_interleaving() and emit_filters() share: the parameters and device files of a pass, how it waits
/// for the kernel before it, and by how much its loop over splits is unrolled, if not wholly.
std::vector<Argument> parameters(const KernelPlan& kernel, const ReduceTiling& tiling);
std::vector<DeviceFile> device_files(const KernelPlan& kernel, const ReduceTiling& tiling);
std::string wait(const KernelPlan& kernel);
std::string unroll(const ReduceTiling& tiling);
/// A template of a pass that stores `value` at y[output], filled with its own holes and those of every such pass.
KernelText fill(const KernelPlan& kernel, std::string_view name, std::string_view file, Holes own);
KernelText emit_interleaving(const KernelPlan& kernel, std::string_view name);
KernelText emit_filters(const KernelPlan& kernel, std::string_view name);
}  // namespace reduce
}  // namespace jitconv::codegen
