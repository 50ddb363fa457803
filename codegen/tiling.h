// The numbers of each kernel family: how the output is cut into blocks, warps and threads, and what lies in shared
// memory. A tiling holds decisions only; what follows from spec and tiling alone is computed by its members. That of
// the tensor family has a file of its own, tensor_tiling.h.
#pragma once

#include <cstdint>

#include "jitconv/spec.h"

namespace jitconv::codegen {

inline constexpr int kWarpSize = 32;

/// Dense fp32 FMA kernel. A warp computes warp_p x warp_q pixels of thread_k channels: its lanes run over pixels and
/// share the channels, so a weight read is one broadcast. A block is warps_k x warps_p x warps_q warps.
struct DirectTiling {
  int thread_k = 8, thread_p = 2, thread_q = 4;  ///< outputs of a thread: channels, rows (lanes_p apart), columns
  int lanes_p = 1, lanes_q = 32;                 ///< lanes_p * lanes_q = 32
  int warps_k = 8, warps_p = 1, warps_q = 1;
  int chunk_c = 4;          ///< input channels of one pipeline stage
  int stages = 2;           ///< pipeline depth
  int copy_vector = 1;      ///< input elements of one copy (NCHW)
  int column_shift = 0;     ///< input columns between the boundary copies start at and the tile's first column
  int input_pitch = 0;      ///< floats from one input row in shared memory to the next
  int weight_pitch = 0;     ///< floats from one tap's channels to the next tap's
  int unroll_c = 1;         ///< channels per iteration of the inner loop
  bool unroll_rows = true;  ///< all R filter rows in the loop body, else one row per iteration
  bool async_copy = true;   ///< cp.async, else through registers
  int store_channels = 2;   ///< channels a warp stages in shared memory at a time; 0: straight from registers (NHWC)

  int warps() const { return warps_k * warps_p * warps_q; }
  int threads() const { return warps() * kWarpSize; }
  int warp_p() const { return thread_p * lanes_p; }
  int warp_q() const { return thread_q * lanes_q; }
  int block_k() const { return thread_k * warps_k; }
  int block_p() const { return warp_p() * warps_p; }
  int block_q() const { return warp_q() * warps_q; }
  int input_rows(const ConvSpec& spec) const;
  int input_columns(const ConvSpec& spec) const;
  /// Floats of one thread's window of an input row, a multiple of 4, counted from column_shift before its first tap.
  int window(const ConvSpec& spec) const;
  std::int64_t input_stage_floats(const ConvSpec& spec) const;
  std::int64_t weight_stage_floats(const ConvSpec& spec) const;
  /// Floats one warp stages to store NCHW output.
  std::int64_t store_stage_floats() const;
  /// Channels one instruction writes to NHWC output.
  int store_vector(const ConvSpec& spec) const;
  std::int64_t shared_bytes(const ConvSpec& spec) const;
  bool operator==(const DirectTiling&) const = default;
};

/// Tensor-core kernel for sm_90a and filters of one tap: fp32, NCHW. Pixels of all images, counted as one line, are
/// rows of the product, output channels its columns. Pixels lie in shared memory as they do in x, and come to the
/// multiplications through registers; a block keeps its weights in shared memory for the whole launch.
struct PointwiseTiling {
  int lane_pixels = 4;      ///< neighbouring pixels of a lane: 4 are rows of two instructions, 2 of one
  int consumers_k = 1;      ///< 2: the multiplying warpgroups share pixels, not channels; 1: channels, not pixels
  int columns = 128;        ///< output channels of a warpgroup: the N of an instruction, a multiple of 8
  int chunk_channels = 32;  ///< of one step of the pipeline, a multiple of 8 that divides a group's channels
  int batch_steps = 2;      ///< eights of channels that are loaded to registers while as many are multiplied
  int stages = 4;           ///< steps in flight
  int splits = 1;           ///< blocks that share the reduction of a tile, each a range of steps

  static constexpr int kConsumers = 2;
  static constexpr int kThreads = 384;  ///< the multiplying warpgroups, and one of which a warp asks for pixels
  // Per thread: of the launch, and what the warpgroups make of it.
  static constexpr int kLaunchRegisters = 168, kConsumerRegisters = 232, kLoaderRegisters = 40;
  int instructions() const { return lane_pixels / 2; }
  int accumulators() const { return instructions() * columns / 2; }
  int batches() const { return chunk_channels / 8 / batch_steps; }  ///< of a step
  int consumer_pixels() const { return kWarpSize * lane_pixels; }
  int block_pixels() const { return consumer_pixels() * (kConsumers / consumers_k); }
  int block_k() const { return columns * consumers_k; }
  /// Floats from a channel's pixels to the next channel's: lanes of a load, which differ in both, meet in no bank.
  int pixel_pitch() const { return block_pixels() + 8; }
  std::int64_t stage_bytes() const { return std::int64_t{4} * chunk_channels * pixel_pitch(); }
  std::int64_t steps(const ConvSpec& spec) const;  ///< of a tile
  std::int64_t steps_of_split(const ConvSpec& spec) const;
  std::int64_t tiles_k(const ConvSpec& spec) const;
  /// What blocks keep of the weights: a tile of a group's output channels, a split of its input channels.
  std::int64_t slabs(const ConvSpec& spec) const;
  std::int64_t slab_slices(const ConvSpec& spec) const;  ///< of four input channels
  static std::int64_t pixels(const ConvSpec& spec);      ///< of all images
  std::int64_t tiles(const ConvSpec& spec) const;        ///< of pixels
  /// Bytes from a slice of the weights to the next: one row more than there are, so that stores meet in no bank.
  int weight_pitch() const;
  bool keeps_bias(const ConvSpec& spec) const { return spec.epilogue.bias && splits == 1; }  ///< in shared memory
  std::int64_t weights_first_byte() const;
  std::int64_t bias_first_byte(const ConvSpec& spec) const;
  std::int64_t barriers_first_byte(const ConvSpec& spec) const;
  std::int64_t shared_bytes(const ConvSpec& spec) const;
  std::int64_t partial_sum_stride(const ConvSpec& spec) const;  ///< floats from one split's sums to the next's
  std::int64_t partial_sum_bytes(const ConvSpec& spec) const;
  bool operator==(const PointwiseTiling&) const = default;
};

/// Depthwise kernel. A block computes a band of rows of one input channel's outputs, or several whole planes if they
/// are small; a thread marches down thread_p rows of thread_q columns with the input rows in registers.
struct DepthwiseTiling {
  int thread_p = 8, thread_q = 4;  ///< consecutive rows and columns of a thread
  int threads_p = 2, threads_q = 128;
  int planes = 1;        ///< input planes of a block; more than 1 only if the tile is the whole plane
  int input_pitch = 0;   ///< floats from one input row in shared memory to the next
  int column_shift = 0;  ///< input columns between the 16-byte boundary copies start at and the tile's first column
  int copy_vector = 4;   ///< elements of one copy
  bool async_copy = true;
  bool unroll_rows = true;  ///< all R filter rows in the body, else one row per iteration
  bool weights_in_registers = true;
  enum class Store : std::uint8_t { vector, flat, rows };
  Store store = Store::flat;  ///< 16-byte stores from registers; or staged: the tile as one flat run, or row by row

  int threads() const { return threads_p * threads_q * planes; }
  int tile_p() const { return thread_p * threads_p; }
  int tile_q() const { return thread_q * threads_q; }
  int input_rows(const ConvSpec& spec) const;
  /// Floats of one thread's window of an input row, a multiple of 4, counted from column_shift before its first tap.
  int window(const ConvSpec& spec) const;
  std::int64_t input_floats(const ConvSpec& spec) const;
  /// Elements one instruction of a flat store writes.
  int store_vector(const ConvSpec& spec) const;
  /// Where the staged output starts: over the input if that is no longer needed.
  std::int64_t store_first_float(const ConvSpec& spec) const;
  std::int64_t shared_bytes(const ConvSpec& spec, const TensorShape& out) const;
  bool operator==(const DepthwiseTiling&) const = default;
};

/// Always valid: every thread reads its operands from global memory. Lanes run along what is contiguous in y.
struct FallbackTiling {
  int thread_k = 4;       ///< channels of a thread
  int thread_pixels = 1;  ///< pixels of a thread, one block apart
  bool lanes_over_channels = false;
  /// Threads along the channels of a group.
  std::int64_t tiles_k(const ConvSpec& spec) const;
  bool operator==(const FallbackTiling&) const = default;
};

}  // namespace jitconv::codegen
