// What the parts of a wgmma_rows kernel cost. Cycles are of an SM.
#pragma once

#include <cstdint>

namespace jitconv::codegen {

struct WgmmaRowsCosts {
  std::int64_t picoseconds_per_cycle;
  std::int64_t start;  ///< picoseconds: packing, the launch, the first loads
  /// A row of a strip takes the sum of these: consumers multiply, load and store at the same time, but wait for each
  /// other.
  std::int64_t multiply_percent;  ///< of the time of multiplications alone
  std::int64_t load_batch;        ///< cycles of a batch of loads of a lane, all four warps loading
  std::int64_t load;              ///< cycles of each of them
  std::int64_t staged_columns;    ///< cycles of the sums of 32 columns of a strip, through shared memory
  std::int64_t stored_vector;     ///< cycles of 32 outputs
  /// Per cent of a row's time, more.
  std::int64_t weights_come_percent;   ///< where weights come with each step
  std::int64_t long_step_percent;      ///< where a step has eight slices
  std::int64_t few_stages_percent;     ///< with four or five stages
  std::int64_t unaligned_percent;      ///< where strips do not begin with a line of 128 bytes
  std::int64_t lead_percent;           ///< where rows of y do not begin with a sector
  std::int64_t few_channels_percent;   ///< up to 4 output channels: FMA took 0.133 ms, this 0.138
  std::int64_t some_inputs_percent;    ///< of 8 to 16 input channels, of which a row's products hide fewer stores
  std::int64_t few_inputs_percent;     ///< below 8 input channels, where wgmma stores faster: 0.060 ms, this 0.103
  std::int64_t two_consumers_percent;  ///< where one multiplies alone while the other stores
  std::int64_t sixteen_bits_percent;   ///< of tensors of 16 bits, whose pixels are loaded one by one, too
  std::int64_t residual_percent;       ///< of the whole: it is read element by element
  std::int64_t dram_bytes_per_microsecond;
};

}  // namespace jitconv::codegen
