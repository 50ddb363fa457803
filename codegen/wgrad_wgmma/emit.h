// Parts of a wgrad_wgmma kernel's text: what its loading warps do, and what its consumers do. emit.cpp puts them
// together.
#pragma once

#include <string>

#include "codegen/wgrad_wgmma/tiling.h"

namespace jitconv::codegen {

/// The steps of the loading warpgroups.
std::string wgrad_load_steps(const WgradGeometry& geometry);

/// The steps of the multiplying warpgroups.
std::string wgrad_consume(const WgradGeometry& geometry);

}  // namespace jitconv::codegen
