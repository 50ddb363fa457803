// How fast a convolution could be on a device at best: the larger of its bytes over the memory rate and its FLOP over
// the arithmetic rate. Rates are measured ones where somebody measured them, else computed from the device's clocks.
#pragma once

#include <string>

#include "codegen/plan.h"
#include "tools/device.h"

namespace jitconv::tools {

struct Ceilings {
  double bytes_per_s = 0;
  double fma_flop_per_s = 0;   ///< fp32 FMA, two each
  double tf32_flop_per_s = 0;  ///< tensor cores, as warpgroups use them
  double half_flop_per_s = 0;  ///< the same with f16 or bf16 operands
  std::string origin;          ///< one line: where the rates are from

  /// FLOP per second of what the plan's family computes with.
  double flop_per_s(const codegen::ConvPlan& plan) const;
};

Ceilings ceilings_of(const DeviceProperties& device);

/// The least time in ms that `work` can take at these rates.
double floor_ms(const codegen::Work& work, double bytes_per_s, double flop_per_s);

}  // namespace jitconv::tools
