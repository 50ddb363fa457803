// The gather_patches pass's row of the table in families.cpp, and how families add it to a plan.
#pragma once

#include "codegen/families.h"
#include "codegen/plan.h"
#include "codegen/text/emitter.h"

namespace jitconv::codegen {

FamilyFunctions gather_patches_pass();

/// Puts a kernel that gathers the patches of x before the plan's convolution, whose problem is patch_problem(asked) and
/// which reads a new region of scratch.
void add_patch_gathering(ConvPlan& plan, const Problem& asked);

namespace gather_patches {
KernelText emit(const KernelPlan& kernel, std::string_view name);
}
}  // namespace jitconv::codegen
