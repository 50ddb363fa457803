// What the parts of a wgmma_rows kernel cost. Cycles are of an SM.
#pragma once

#include <cstdint>

namespace jitconv::codegen {

struct WgmmaRowsCosts {
  std::int64_t picoseconds_per_cycle;
  std::int64_t start;             ///< picoseconds: packing, the launch, the first loads
  std::int64_t multiply_percent;  ///< of the time of multiplications alone
  std::int64_t shared_bytes_per_cycle;
  std::int64_t load_latency;  ///< cycles of a batch of a warp's loads
  std::int64_t load;          ///< cycles more for each of them, all four warps loading
  /// Per cent of the time, more.
  std::int64_t long_step_percent;     ///< of loads, where a step has eight slices
  std::int64_t weights_come_percent;  ///< of loads, where weights come with each step
  std::int64_t few_channels_percent;  ///< up to 4 output channels, where FMA took 0.26 ms, this 0.30
  /// Where there are fewer than two input channels for each output channel, and with a residual, which is read element
  /// by element: stores, which the price leaves out, then take longer than the rest. Ten of eleven such convolutions
  /// took 1.04 to 1.9 times as long as with wgmma.
  std::int64_t stores_percent;
  std::int64_t few_stages_percent;  ///< where stages hold less than half of a row's channels
  std::int64_t dram_bytes_per_microsecond;
};

}  // namespace jitconv::codegen
