// The modelled time of a wgrad_wgmma kernel and of the pass that adds its partial sums.
#pragma once

#include <cstdint>

#include "codegen/wgrad_wgmma/costs.h"
#include "codegen/wgrad_wgmma/tiling.h"
#include "jitconv/target.h"

namespace jitconv::codegen {

/// Picoseconds of a launch of `blocks` blocks.
std::int64_t wgrad_wgmma_price(const WgradGeometry& geometry, std::int64_t blocks, const Target& target,
                               const WgradWgmmaCosts& costs);

}  // namespace jitconv::codegen
