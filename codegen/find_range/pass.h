// The rows of the table in families.cpp of the passes that find ranges, and how families add them to a plan.
#pragma once

#include "codegen/families.h"
#include "codegen/plan.h"
#include "codegen/text/emitter.h"

namespace jitconv::codegen {

FamilyFunctions find_weight_range_pass();
FamilyFunctions find_input_range_pass();

/// Puts a kernel that finds the range of w before the one that packs it, the plan's first, whose region keeps it; and
/// of the input before the convolution, which gets a new region.
void add_weight_range(ConvPlan& plan);
void add_input_range(ConvPlan& plan);

namespace find_range {
KernelText emit_of_weight(const KernelPlan& kernel, std::string_view name);
KernelText emit_of_input(const KernelPlan& kernel, std::string_view name);
}  // namespace find_range
}  // namespace jitconv::codegen
