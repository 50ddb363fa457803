// The depthwise_planes family's row of the table in families.cpp.
#pragma once

#include "codegen/families.h"
#include "codegen/plan.h"
#include "codegen/text/emitter.h"

namespace jitconv::codegen {

FamilyFunctions depthwise_planes_family();

namespace depthwise_planes {

std::string enumerate(const Problem& problem, const Target& target, CandidateList& into);
KernelText emit(const KernelPlan& kernel, std::string_view name);

}  // namespace depthwise_planes
}  // namespace jitconv::codegen
