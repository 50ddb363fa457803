// The pack_pixels pass's row of the table in families.cpp, and how families add it to a plan.
#pragma once

#include "codegen/families.h"
#include "codegen/plan.h"
#include "codegen/text/emitter.h"

namespace jitconv::codegen {

FamilyFunctions pack_pixels_pass();

/// Puts a kernel that packs these tensors before the plan's convolution, which then reads the new regions of scratch.
void add_pixel_packing(ConvPlan& plan, PackPixelsTiling tiling);

/// Modelled time in picoseconds.
std::int64_t pixel_packing_cost(const PackPixelsTiling& tiling, const FmaCosts& costs);

namespace pack_pixels {
KernelText emit(const KernelPlan& kernel, std::string_view name);
}
}  // namespace jitconv::codegen
