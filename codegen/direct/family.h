// The direct family's row of the table in families.cpp.
#pragma once

#include "codegen/families.h"
#include "codegen/plan.h"
#include "codegen/text/emitter.h"

namespace jitconv::codegen {

FamilyFunctions direct_family();

namespace direct {

std::string enumerate(const Problem& problem, const Target& target, CandidateList& into);
KernelText emit(const KernelPlan& kernel, std::string_view name);

}  // namespace direct
}  // namespace jitconv::codegen
