// How fast a convolution could be on a device at best: the larger of its bytes over the memory rate and its FLOP over
// the arithmetic rate. Rates are measured ones where somebody measured them, else computed from the device's clocks.
#pragma once

#include <string>

#include "codegen/plan.h"
#include "tools/device.h"

namespace jitconv::tools {

struct Ceilings {
  double bytes_per_s = 0;
  double flop_per_s = 0;  ///< fp32 FMA, two each; what every kernel family of this version computes with
  std::string origin;     ///< one line: where the two rates are from
};

Ceilings ceilings_of(const DeviceProperties& device);

/// The least time in ms that `work` can take.
double floor_ms(const Ceilings& ceilings, const codegen::Work& work);

}  // namespace jitconv::tools
