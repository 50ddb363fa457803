// The transpose_weights pass's row of the table in families.cpp, and how it is added to a plan.
#pragma once

#include "codegen/families.h"
#include "codegen/plan.h"
#include "codegen/text/emitter.h"

namespace jitconv::codegen {

FamilyFunctions transpose_weights_pass();

/// Puts a kernel that reads the weights as `asked` has them before the plan's others, and lets the convolution read the
/// dense weights that it writes to a new region of scratch. That region may also come from the caller.
void add_weight_transposition(ConvPlan& plan, const Problem& asked);

/// Picoseconds of that kernel.
std::int64_t weight_transposition_cost(const Problem& problem, const FmaCosts& costs);

namespace transpose_weights {
KernelText emit(const KernelPlan& kernel, std::string_view name);
}
}  // namespace jitconv::codegen
