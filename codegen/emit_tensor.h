// Parts of the tensor family's text: the multiplication; the kernel that packs weights, which emit_tensor_pack.cpp
// prints for emit_tensor.cpp; and the store, which emit_tensor_store.cpp does: from accumulators to y, or to partial
// sums and on to y.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "codegen/emitter.h"
#include "codegen/plan.h"
#include "codegen/source.h"
#include "codegen/template_text.h"

namespace jitconv::codegen {

/// A device file of a multiplication, "device/multiply_tf32.cuh" or its like, for a run of `columns` positions.
std::string multiply_text(std::string_view file, int columns);

/// The kernel that packs the weights: its launch, its constants and its text.
KernelEntry tensor_pack_entry(const ConvPlan& plan, const TensorTiling& tiling);
void add_tensor_pack_constants(Constants& constants, const ConvSpec& spec, const TensorTiling& tiling);
std::string emit_tensor_pack(const ConvPlan& plan, const TensorTiling& tiling);

/// Holes of tensor.cu.in that concern the store.
Holes tensor_store_holes(const ConvPlan& plan, const TensorTiling& tiling);

/// The kernel that adds the partial sums of a split reduction.
std::string emit_tensor_reduce(const ConvPlan& plan, const std::string& name, const std::vector<Argument>& arguments);

}  // namespace jitconv::codegen
