// Makes weight gradients small enough to run on a CPU in a moment: reduce.h for sums that run over pixels. Tiles of dw
// stay as they are, images and rows or columns of pixels are taken away.
#pragma once

#include "tools/reduce.h"

namespace jitconv::tools {

/// The sums run over pixels, which blocks share in splits.
bool sums_pixels(const codegen::ConvPlan& plan);

/// Lets result.plan be that of the smaller gradient. It has two splits of the pixels where the full one has several.
void reduce_pixels(Reduction& result, const WorkLimits& limits);

/// Splits of the pixels, tiles of dw along K, and along C*R*S.
std::array<std::int64_t, 3> gradient_tiles(const codegen::ConvPlan& plan);

/// The convolution has outputs: its filter is no larger than the padded input.
bool has_outputs(const ConvSpec& spec);

}  // namespace jitconv::tools
