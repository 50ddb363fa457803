// What kernels of a spec are called, apart from their family. It tells apart the convolutions of a program; it is no
// identity: alignment and the parameters of activations are not in it.
#pragma once

#include <string>

#include "jitconv/spec.h"

namespace jitconv::codegen {

/// `fprop_fp32_nchw_n8c32h512w512_k64_5x9_pad2x4_d2x3_bias_relu` of a canonical spec: operation, math mode or type,
/// layout, extents, and what else differs from the plainest convolution.
std::string convolution_name(const ConvSpec& spec);

}  // namespace jitconv::codegen
