// The wgrad_depthwise family's row of the table in families.cpp.
#pragma once

#include "codegen/families.h"
#include "codegen/plan.h"
#include "codegen/text/emitter.h"

namespace jitconv::codegen {

FamilyFunctions wgrad_depthwise_family();

namespace wgrad_depthwise {

std::string enumerate(const Problem& problem, const Target& target, CandidateList& into);
KernelText emit(const KernelPlan& kernel, std::string_view name);

}  // namespace wgrad_depthwise
}  // namespace jitconv::codegen
