// Ceilings by device.
#include "tools/roofline.h"

#include <fmt/format.h>

#include <algorithm>

namespace jitconv::tools {
namespace {

/// fp32 FMA per clock and multiprocessor: CUDA C++ Programming Guide, "Arithmetic Instructions".
int fma_lanes(const Target& target) {
  const int capability = target.compute_capability();
  return capability == 75 || capability == 80 ? 64 : 128;
}

}  // namespace

Ceilings ceilings_of(const DeviceProperties& device) {
  if (device.name.find("H200") != std::string::npos && device.target.sm_count == 132) {
    return {4.23e12, 66.9e12, "H200: copy measured at 4.23 TB/s; fp32 FMA peak 66.9 TFLOP/s at 1.98 GHz"};
  }
  const double flop = 2.0 * fma_lanes(device.target) * device.target.sm_count * device.clock_hz;
  return {device.memory_bytes_per_s, flop,
          fmt::format("{}: {:.2f} TB/s from memory clock and bus width (a copy reaches about 90 % of it); "
                      "{:.1f} TFLOP/s fp32 FMA from {} multiprocessors at {:.2f} GHz",
                      device.name, device.memory_bytes_per_s * 1e-12, flop * 1e-12, device.target.sm_count,
                      device.clock_hz * 1e-9)};
}

double floor_ms(const Ceilings& ceilings, const codegen::Work& work) {
  const double memory = ceilings.bytes_per_s > 0 ? work.bytes / ceilings.bytes_per_s : 0;
  const double arithmetic = ceilings.flop_per_s > 0 ? work.flop / ceilings.flop_per_s : 0;
  return std::max(memory, arithmetic) * 1e3;
}

}  // namespace jitconv::tools
