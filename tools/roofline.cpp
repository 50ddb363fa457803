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

/// Dense FLOP per clock and multiprocessor of a warpgroup's TF32 multiplications, with 16-bit operands twice as many:
/// NVIDIA H100 Tensor Core GPU Architecture, table 2. No family uses tensor cores elsewhere.
int tf32_flop_per_clock(const Target& target) { return target.compute_capability() == 90 ? 2048 : 0; }

}  // namespace

double Ceilings::flop_per_s(const codegen::ConvPlan& plan) const {
  if (!codegen::uses_tensor_cores(plan.family())) return fma_flop_per_s;
  return plan.spec.dtype == DataType::f32 ? tf32_flop_per_s : half_flop_per_s;
}

Ceilings ceilings_of(const DeviceProperties& device) {
  if (device.name.find("H200") != std::string::npos && device.target.sm_count == 132) {
    return {4.23e12, 66.9e12, 389e12, 776e12,
            "H200: copy measured at 4.23 TB/s, matrix products of 8192 x 8192 x 8192 at 389 TFLOP/s in TF32 and 776 in "
            "bf16; fp32 FMA peak 66.9 TFLOP/s at 1.98 GHz"};
  }
  const double clocks = device.target.sm_count * device.clock_hz;
  const double flop = 2.0 * fma_lanes(device.target) * clocks, tf32 = tf32_flop_per_clock(device.target) * clocks;
  return {device.memory_bytes_per_s, flop, tf32, 2 * tf32,
          fmt::format("{}: {:.2f} TB/s from memory clock and bus width (a copy reaches about 90 % of it); "
                      "{:.1f} TFLOP/s fp32 FMA from {} multiprocessors at {:.2f} GHz",
                      device.name, device.memory_bytes_per_s * 1e-12, flop * 1e-12, device.target.sm_count,
                      device.clock_hz * 1e-9)};
}

double floor_ms(const codegen::Work& work, double bytes_per_s, double flop_per_s) {
  const double memory = bytes_per_s > 0 ? work.bytes / bytes_per_s : 0;
  const double arithmetic = flop_per_s > 0 ? work.flop / flop_per_s : 0;
  return std::max(memory, arithmetic) * 1e3;
}

}  // namespace jitconv::tools
