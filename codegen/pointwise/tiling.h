// What the pointwise family decides: how the output is cut into blocks, warps and threads, and what lies in shared
// memory. What follows from a tiling and the problem is computed by its members.
#pragma once

#include <cstdint>

#include "codegen/arithmetic.h"
#include "codegen/problem.h"

namespace jitconv::codegen {

/// Tensor-core kernel for sm_90a and filters of one tap: fp32, NCHW. Pixels are rows of the product, output channels
/// its columns. Pixels lie in shared memory as they do in x, and come to the multiplications through registers; a block
/// keeps its weights in shared memory for the whole launch, or gets them with every step.
struct PointwiseTiling {
  /// What pixels are a tile. Those of a line lie in shared memory in its order, and a lane reads neighbours as a
  /// vector. Others lie there as they were copied, and a lane reads each from a place of its own.
  enum class Pixels : std::uint8_t {
    line,    ///< block_pixels() of the pixels of all images, counted as one line
    images,  ///< those of `extent` whole images, whose planes are copied as a whole
    rows,    ///< those of `extent` rows of an image, which TMA brings without the rows between
  };
  Pixels tile = Pixels::line;
  int extent = 0;           ///< images or rows of a tile
  int lane_pixels = 4;      ///< pixels of a lane: 4 are rows of two instructions, 2 of one
  int consumers_k = 1;      ///< 2: the consumer warpgroups share pixels, not channels; 1: channels, not pixels
  int columns = 128;        ///< output channels of a warpgroup: the N of an instruction, a multiple of 8
  int chunk_channels = 32;  ///< of one step of the pipeline, a multiple of 8 that divides a group's channels
  int batch_steps = 2;      ///< eights of channels that are loaded to registers while as many are multiplied
  int stages = 4;           ///< steps in flight
  /// TMA brings the weights of each step, swizzled rows of kRowBytes; else a block keeps those of all its steps.
  bool streams_weights = false;
  int splits = 1;  ///< blocks that share the reduction of a tile, each a range of steps

  static constexpr int kConsumers = 2;
  static constexpr int kProducerWarps = 4;
  static constexpr int kThreads = 384;  ///< the consumer warpgroups, and one whose warps copy pixels
  // Per thread: of the launch, and what the warpgroups make of it.
  static constexpr int kLaunchRegisters = 168, kConsumerRegisters = 232, kProducerRegisters = 40;
  int instructions() const { return lane_pixels / 2; }
  int accumulators() const { return instructions() * columns / 2; }
  int batches() const { return chunk_channels / 8 / batch_steps; }  ///< of a step
  int consumer_pixels() const { return kWarpSize * lane_pixels; }
  int block_pixels() const { return consumer_pixels() * (kConsumers / consumers_k); }
  int block_k() const { return columns * consumers_k; }
  bool gathers() const { return tile != Pixels::line; }
  std::int64_t tile_pixels(const Problem& problem) const;  ///< that a tile stores, at most
  /// Runs of a channel's pixels in x, of a line's tile, one of each image that it reaches into: 1, up to 2, or up to 3
  /// and more.
  int runs(const Problem& problem) const;
  /// Floats from a channel's pixels to the next channel's. Lanes that load a line have no bank conflicts.
  std::int64_t pixel_pitch(const Problem& problem) const;
  std::int64_t stage_bytes(const Problem& problem) const;      ///< of pixels
  int weight_row_bytes() const { return 4 * chunk_channels; }  ///< of a step's channels, if they are streamed
  std::int64_t weight_stage_bytes() const;                     ///< from a step's weights to the next, if streamed
  std::int64_t steps(const Problem& problem) const;            ///< of a tile
  std::int64_t steps_of_split(const Problem& problem) const;
  std::int64_t tiles_k(const Problem& problem) const;
  /// What blocks keep of the weights: a tile of a group's output channels, a split of its input channels.
  std::int64_t slabs(const Problem& problem) const;
  std::int64_t slab_slices(const Problem& problem) const;  ///< of four input channels
  static std::int64_t pixels(const Problem& problem);      ///< of y, of all images
  std::int64_t tiles(const Problem& problem) const;        ///< of pixels
  /// Bytes from a slice of the weights to the next: one row more than there are, so that stores have no bank conflicts.
  int weight_pitch() const;
  bool keeps_bias(const Problem& problem) const { return problem.epilogue.bias && splits == 1; }  ///< in shared memory
  std::int64_t weights_first_byte(const Problem& problem) const;
  std::int64_t bias_first_byte(const Problem& problem) const;
  std::int64_t barriers_first_byte(const Problem& problem) const;
  std::int64_t shared_bytes(const Problem& problem) const;
  std::int64_t partial_sum_stride(const Problem& problem) const;  ///< floats from one split's sums to the next's
  std::int64_t partial_sum_bytes(const Problem& problem) const;
  bool operator==(const PointwiseTiling&) const = default;
};

}  // namespace jitconv::codegen
