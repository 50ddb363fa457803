// The wgrad_wgmma family's row of the table in families.cpp.
#pragma once

#include "codegen/families.h"
#include "codegen/plan.h"
#include "codegen/text/emitter.h"

namespace jitconv::codegen {

FamilyFunctions wgrad_wgmma_family();

namespace wgrad_wgmma {

std::string enumerate(const Problem& problem, const Target& target, CandidateList& into);
KernelText emit(const KernelPlan& kernel, std::string_view name);

}  // namespace wgrad_wgmma
}  // namespace jitconv::codegen
