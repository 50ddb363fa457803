// The kernel that adds the partial sums of a split reduction, for every family that splits one.
#pragma once

#include <cstdint>
#include <string>

#include "codegen/emitter.h"
#include "codegen/plan.h"
#include "codegen/source.h"

namespace jitconv::codegen {

/// Its launch, behind the convolution's, which it may start before the end of.
KernelEntry reduce_entry(const ConvPlan& plan);

/// Its constants; `stride`: floats from one split's sums to the next's.
void add_reduce_constants(Constants& constants, const ConvSpec& spec, std::int64_t stride);

/// Its text, with the epilogue that the convolution left out.
std::string emit_reduce(const ConvPlan& plan);

}  // namespace jitconv::codegen
