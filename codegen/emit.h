// One function per kernel family: a plan of that family becomes the complete text of its .cu, in which lines may be
// long.
#pragma once

#include <string>

#include "codegen/plan.h"
#include "codegen/source.h"

namespace jitconv::codegen {

std::string emit_pointwise(const ConvPlan& plan);
std::string emit_tensor(const ConvPlan& plan);
std::string emit_direct(const ConvPlan& plan);
std::string emit_depthwise(const ConvPlan& plan);
std::string emit_fallback(const ConvPlan& plan);

/// The launches of a plan of several kernels, in order.
std::vector<KernelEntry> pointwise_entries(const ConvPlan& plan);
std::vector<KernelEntry> tensor_entries(const ConvPlan& plan);

}  // namespace jitconv::codegen
