// The data of the cost model: a table for each kind of kernel, declared beside its formula; the values for a target are
// in a file of this folder. Formulas are in codegen/cost.cpp and in the families.
#pragma once

#include "codegen/costs/fma.h"
#include "codegen/depthwise/costs.h"
#include "codegen/depthwise_nhwc/costs.h"
#include "codegen/depthwise_planes/costs.h"
#include "codegen/direct/costs.h"
#include "codegen/fallback/costs.h"
#include "codegen/pointwise/costs.h"
#include "codegen/wgmma/costs.h"
#include "codegen/wgmma_rows/costs.h"
#include "codegen/wgrad/costs.h"
#include "codegen/wgrad_depthwise/costs.h"
#include "codegen/wgrad_wgmma/costs.h"
#include "jitconv/target.h"

namespace jitconv::codegen {

/// Members are std::int64_t, in tables and groups of them: entries.h names them all.
struct Costs {
  FmaCosts fma;
  DirectCosts direct;
  DepthwiseCosts depthwise;
  DepthwisePlanesCosts depthwise_planes;
  DepthwiseNhwcCosts depthwise_nhwc;
  FallbackCosts fallback;
  PointwiseCosts pointwise;
  WgmmaCosts wgmma;
  WgmmaRowsCosts wgmma_rows;
  WgradCosts wgrad;
  WgradDepthwiseCosts wgrad_depthwise;
  WgradWgmmaCosts wgrad_wgmma;
};

/// The tables for a GPU. All GPUs share those of an H200 so far.
const Costs& costs_of(const Target& target);

}  // namespace jitconv::codegen
