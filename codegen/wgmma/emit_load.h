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

/// Planes that threads align: constants of the boxes and of the vectors, how TMA brings them, and how lanes shift them.
void add_box_constants(Constants& constants, const WgmmaGeometry& geometry);
void add_align_constants(Constants& constants, const WgmmaGeometry& geometry);
std::string copy_periods(const WgmmaGeometry& geometry);
std::string align_planes(const WgmmaGeometry& geometry);

}  // namespace jitconv::codegen
