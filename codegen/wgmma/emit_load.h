// The parts of the producer's text, for emit_load.cpp, which puts them together.
#pragma once

#include <string>

#include "codegen/wgmma/emit.h"

namespace jitconv::codegen {

/// Barriers behind those of the stages, and what makes them ready. layout_comment() lists them.
Holes barrier_holes(const WgmmaGeometry& geometry);

/// Who waits for the kernel before: all that copy what it packs, and no others.
std::string await_packing(const WgmmaGeometry& geometry);

/// Where weights are loaded and awaited: with each step, or once for all tiles.
Holes weight_holes(const WgmmaGeometry& geometry);

/// What TMA copies of x, by its address or its tensor map; functions that copy a step's pixels: those that threads make
/// operands of, those that are operands, pixels in im2col mode or planes; and what is copied before the block is ready,
/// the first steps of each producer warp.
std::string copied_tensor(const WgmmaGeometry& geometry);
std::string copy_pixels(const WgmmaGeometry& geometry);
std::string copy_im2col(const WgmmaGeometry& geometry);
std::string copy_planes(const WgmmaGeometry& geometry);
std::string first_copies(const WgmmaGeometry& geometry);

/// Boxes of planes that start at the same place within 16 bytes: WgmmaPixels::copies_periods().
std::int64_t box_channels(const WgmmaGeometry& geometry);
void add_box_constants(Constants& constants, const WgmmaGeometry& geometry);

/// Planes that threads align: constants of the vectors, and how lanes shift them.
void add_align_constants(Constants& constants, const WgmmaGeometry& geometry);
std::string align_planes(const WgmmaGeometry& geometry);

}  // namespace jitconv::codegen
