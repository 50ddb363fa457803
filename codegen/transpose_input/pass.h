// The transpose_input pass's row of the table in families.cpp, and how families add it to a plan.
#pragma once

#include "codegen/families.h"
#include "codegen/plan.h"
#include "codegen/text/emitter.h"

namespace jitconv::codegen {

FamilyFunctions transpose_input_pass();

/// Puts a kernel that transposes x before the plan's convolution, which then convolves the result: its problem becomes
/// transposed_problem(), read from a new region of scratch.
void add_input_transposition(ConvPlan& plan);
/// The same of one that splits the input, whose range is known: split_problem().
void add_input_splitting(ConvPlan& plan);

namespace transpose_input {
KernelText emit(const KernelPlan& kernel, std::string_view name);
}
}  // namespace jitconv::codegen
