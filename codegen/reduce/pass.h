// The reduce pass's row of the table in families.cpp, and how families that split a reduction add it to a plan.
#pragma once

#include <cstdint>

#include "codegen/families.h"
#include "codegen/plan.h"
#include "codegen/text/emitter.h"

namespace jitconv::codegen {

FamilyFunctions reduce_pass();

/// Lets the plan's convolution write partial sums, `stride` floats from one split's to the next's, to a new region of
/// scratch, and adds the kernel that adds them up and applies the epilogue. It may start before the convolution ends.
void add_reduction(ConvPlan& plan, int split_k, std::int64_t stride, Relu relu);

namespace reduce {
KernelText emit(const KernelPlan& kernel, std::string_view name);
}
}  // namespace jitconv::codegen
