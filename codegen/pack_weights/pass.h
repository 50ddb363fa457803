// The pack_weights pass's row of the table in families.cpp, and how families add it to a plan.
#pragma once

#include "codegen/families.h"
#include "codegen/plan.h"
#include "codegen/text/emitter.h"

namespace jitconv::codegen {

FamilyFunctions pack_weights_pass();

/// Puts a kernel that packs w as `tiling` says before the plan's others, and lets the convolution read a new region of
/// scratch. That region may also come from the caller.
void add_weight_packing(ConvPlan& plan, PackWeightsTiling tiling);

namespace pack_weights {
KernelText emit(const KernelPlan& kernel, std::string_view name);
}
}  // namespace jitconv::codegen
