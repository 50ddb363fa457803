// The activation_gradient pass's row of the table in families.cpp, and how it is added to a plan.
#pragma once

#include <cstdint>
#include <string_view>

#include "codegen/families.h"
#include "codegen/plan.h"
#include "codegen/text/emitter.h"

namespace jitconv::codegen {

FamilyFunctions activation_gradient_pass();

/// Adds the region of scratch for dz to a plan without kernels: it lies as dy, which the kernels that are added to the
/// plan then read there. Returns its tensor.
Tensor add_dz(ConvPlan& plan, const Problem& asked);

/// Puts the kernel that writes dz before all that read it. The plan is complete otherwise.
void add_activation_gradient(ConvPlan& plan, const Problem& asked);

/// Whether the derivative is computed from the forward result (LaunchArgs::saved is y), rather than from what the
/// activation was applied to.
bool derives_from_result(Activation activation);

/// Picoseconds of that kernel.
std::int64_t activation_gradient_cost(const Problem& asked, const FmaCosts& costs);

namespace activation_gradient {
KernelText emit(const KernelPlan& kernel, std::string_view name);
}
}  // namespace jitconv::codegen
