// The bias_gradient pass's row of the table in families.cpp, and how families add it to a plan.
#pragma once

#include <cstdint>
#include <string_view>

#include "codegen/families.h"
#include "codegen/plan.h"
#include "codegen/text/emitter.h"

namespace jitconv::codegen {

FamilyFunctions bias_gradient_pass();

/// Puts a kernel before the plan's others that sums what `asked` has as its output, dy, in as many shares as dw
/// has splits, behind the sums of dw: tiling's region of scratch and stride are those of add_gradient_reduction().
void add_bias_gradient(ConvPlan& plan, const Problem& asked, const BiasGradientTiling& tiling);

/// Picoseconds of that kernel.
std::int64_t bias_gradient_cost(const Problem& asked, const FmaCosts& costs);

namespace bias_gradient {
KernelText emit(const KernelPlan& kernel, std::string_view name);
}
}  // namespace jitconv::codegen
