// The wgmma_rows family's row of the table in families.cpp.
#pragma once

#include "codegen/families.h"
#include "codegen/plan.h"
#include "codegen/text/emitter.h"

namespace jitconv::codegen {

FamilyFunctions wgmma_rows_family();

namespace wgmma_rows {

std::string enumerate(const Problem& problem, const Target& target, CandidateList& into);
KernelText emit(const KernelPlan& kernel, std::string_view name);

}  // namespace wgmma_rows
}  // namespace jitconv::codegen
