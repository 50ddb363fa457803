// Parts of the pointwise family's text, which emit.cpp puts together.
#pragma once

#include "codegen/pointwise/tiling.h"
#include "codegen/tensor_map.h"
#include "codegen/text/emitter.h"

namespace jitconv::codegen {

/// Holes of kernel.cu.in that concern the weights: where they come from, where they lie, and when a stage is free.
Holes pointwise_weight_holes(const Problem& problem, const PointwiseTiling& tiling);

/// And those that concern the pixels: what a tile of them is, how they come to shared memory and from there to
/// registers.
Holes pointwise_pixel_holes(const Problem& problem, const PointwiseTiling& tiling);
void add_pointwise_pixel_constants(Constants& constants, const Problem& problem, const PointwiseTiling& tiling);

/// x as TMA sees it where it brings rows of an image: only those that an output meets.
TensorMapShape pointwise_pixel_map(const Problem& problem, const PointwiseTiling& tiling);

/// w as TMA sees it where weights come with each step: rows of output channels.
TensorMapShape pointwise_weight_map(const Problem& problem, const PointwiseTiling& tiling);

}  // namespace jitconv::codegen
