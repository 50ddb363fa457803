// The name of a plan's kernels, which profilers show. It tells apart the convolutions of a program; it is no identity:
// alignment, the parameters of activations and the tiling are not in it.
#pragma once

#include <string>

#include "codegen/plan.h"

namespace jitconv::codegen {

/// `jitconv_direct_fprop_fp32_nchw_n8c32h512w512_k64_5x9_pad2x4_d2x3_bias_relu`: family, operation, math mode or type,
/// layout, extents, and what else differs from the plainest convolution. A C identifier of at most 512 characters.
std::string kernel_name(const ConvPlan& plan);

}  // namespace jitconv::codegen
