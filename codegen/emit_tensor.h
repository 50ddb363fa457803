// Parts of the tensor family's text: the multiplication, and the store, which emit_tensor_store.cpp prints for
// emit_tensor.cpp: from accumulators to y, or to partial sums and on to y.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "codegen/plan.h"
#include "codegen/source.h"
#include "codegen/template_text.h"

namespace jitconv::codegen {

/// A device file of a multiplication, "device/multiply_tf32.cuh" or its like, of `columns` columns.
std::string multiply_text(std::string_view file, int columns);

/// Holes of tensor.cu.in that concern the store.
Holes tensor_store_holes(const ConvPlan& plan, const TensorTiling& tiling);

/// The kernel that adds the partial sums of a split reduction.
std::string emit_tensor_reduce(const ConvPlan& plan, const std::string& name, const std::vector<Argument>& arguments);

}  // namespace jitconv::codegen
