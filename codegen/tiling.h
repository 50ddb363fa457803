// The numbers of each kernel family: how the output is cut into blocks, warps and threads, and what lies in shared
// memory. A tiling holds decisions only; what follows from spec and tiling alone is computed by its members.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

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

/// Tensor-core kernel for sm_90a. A block is one loading warpgroup and two that multiply; it walks over tiles of
/// block_k channels by one or two runs of positions. A position is a place in an image's grid of output rows that are
/// gap() columns longer than y's, so that a tap is a constant distance between positions; a run is `columns`
/// consecutive ones. A step of the pipeline is one filter row, or all of them, of `slices` slices of channels.
struct TensorTiling {
  /// What the two multiplying warpgroups share: a tile, of which each has channels or a run of its own; the tiles of a
  /// block, which they take in turn, so that one stores while the other multiplies; or the steps of a tile, of which
  /// each takes every second, and they add their sums.
  enum class Share : std::uint8_t { tile, turns, steps };
  Share share = Share::tile;
  /// Output channels of a tile: 128 (each consumer has 64 and all positions), or 64 (which share a tile: a run each).
  int block_k = 128;
  int columns = 256;      ///< positions of a run: the N of a multiplication, a multiple of 8
  int window = 248;       ///< outputs of a run that its tile stores: a multiple of a sector, or whole images
  int images = 0;         ///< consecutive images of a run; 0: its window lies in one image
  int filter_rows = 1;    ///< of a step: 1, or R, and then a pixel is loaded once for all rows
  int slices = 4;         ///< of 16 bytes of channels of a pixel: 1, or even
  int stages = 3;         ///< steps in flight
  int team_warps = 1;     ///< loading warps that share a step; 4 / team_warps teams take steps in turn
  bool resident = false;  ///< all weights stay in shared memory; else they come with each step
  /// Weights come with each step as they lie in w; else a kernel before the convolution packs them.
  bool raw_weights = false;
  /// A kernel before the convolution makes operand rows of all pixels, for all tiles; loading warps only ask for them.
  bool packs_pixels = false;
  /// Pixels of NHWC x come as operand rows, swizzled: the copy engine walks over the grid (im2col), padding included.
  bool walks_pixels = false;
  int load_batch = 0;    ///< pixels, or vectors, of a loading lane in flight; 0 where the copy engine brings them
  int copies_ahead = 0;  ///< steps of a loading warp that the copy engine brings as they lie in x; 0: lanes load them
  int splits = 1;        ///< blocks that share the reduction of a tile, each a range of steps

  /// Warpgroups that have accumulators for different outputs of a tile.
  int tile_consumers() const { return share == Share::tile ? 2 : 1; }
  int runs() const { return 64 * tile_consumers() / block_k; }
  /// Pixels; else the copy engine brings them.
  bool lanes_load() const { return copies_ahead == 0 && !packs_pixels && !walks_pixels; }
  static constexpr int kThreads = 384;
  static int slice_channels(const ConvSpec& spec);  ///< 16 bytes of channels
  int chunk_channels(const ConvSpec& spec) const { return slices * slice_channels(spec); }
  /// Whether 16-bit pixels of x are loaded two at a time: rows of x and of the grid are even and words aligned.
  static bool loads_pairs(const ConvSpec& spec);
  /// Whether a lane loads 16 bytes of a pixel's channels at a time, if it loads them: they are contiguous, and slices
  /// are whole.
  static bool loads_vectors(const ConvSpec& spec);
  /// Loads of a warp, for each phase, of a run's pixels.
  std::int64_t load_items(const ConvSpec& spec) const;
  /// Registers of a loading thread for its part of one of these.
  int load_item_registers(const ConvSpec& spec) const { return loads_vectors(spec) ? 4 : chunk_channels(spec); }
  /// Positions that taps of a filter row reach behind their output's.
  static std::int64_t row_reach(const ConvSpec& spec);
  /// Positions of a grid row that no output has: columns of padding, which serve the end of a row and the start of the
  /// next.
  static std::int64_t gap(const ConvSpec& spec) { return pitch(spec) - output_shape(spec).w; }
  /// A filter column's place modulo the stride: pixels that are equal in this are neighbours in shared memory.
  static int phase_of(const ConvSpec& spec, std::int64_t s);
  static int phases(const ConvSpec& spec);
  /// Filter columns in the order of their pixels' places in shared memory.
  static std::vector<int> tap_order(const ConvSpec& spec);
  /// Rows of y that end inside a run, at most.
  int row_ends(const ConvSpec& spec) const;
  /// Outputs after its window that a run computes, because the runs of some channels start late.
  static int slack(const ConvSpec& spec);
  /// Outputs of a channel that share 32 bytes of y: one, where other channels lie between them.
  static int sector_elements(const ConvSpec& spec);
  /// Positions from one row of the grid to the next.
  static std::int64_t pitch(const ConvSpec& spec);
  /// Rows and positions from one image of a run to the next.
  std::int64_t image_rows(const ConvSpec& spec) const;
  std::int64_t image_positions(const ConvSpec& spec) const { return image_rows(spec) * pitch(spec); }
  /// Positions that taps of a step reach behind a run.
  std::int64_t reach(const ConvSpec& spec) const;
  std::int64_t run_pixels(const ConvSpec& spec) const { return columns + reach(spec); }
  /// Pixels from one slice of a run to the next, such that stores of neighbouring lanes meet in no bank.
  std::int64_t slice_pitch(const ConvSpec& spec) const;
  /// 16-byte places from a pixel of a slice to the next pixel, and from a slice to the next.
  std::int64_t pixel_step() const { return walks_pixels ? slices : 1; }
  std::int64_t slice_step(const ConvSpec& spec) const { return walks_pixels ? 1 : slice_pitch(spec); }
  std::int64_t phase_bytes(const ConvSpec& spec) const;  ///< from the pixels of a phase to those of the next
  std::int64_t run_bytes(const ConvSpec& spec) const { return phases(spec) * phase_bytes(spec); }
  /// Whether the copy engine can walk over x: its limits, and no channels of another group come along.
  bool can_walk_pixels(const ConvSpec& spec) const;
  /// Where it starts, along w and h, and what it goes up to but for the extent.
  static std::array<std::int64_t, 2> walk_lower(const ConvSpec& spec) {
    return {-std::int64_t{spec.padding.left}, -std::int64_t{spec.padding.top}};
  }
  std::array<std::int64_t, 2> walk_upper(const ConvSpec& spec) const;
  /// What it brings of a step, for which run_bytes() keeps whole kilobytes.
  std::int64_t walked_bytes(const ConvSpec& spec) const {
    return runs() * phases(spec) * run_pixels(spec) * slices * 16;
  }
  /// Whether the copy engine can bring a step's pixels: what it copies are whole vectors of 16 bytes.
  bool copies_fit(const ConvSpec& spec) const;
  /// Whether what the copy engine brings of a run's pixels is a box of x.
  bool copies_boxes(const ConvSpec& spec) const;
  /// Whether it is a box that has rows of x, those that the filter's only row meets, and not a part of each plane.
  bool copies_rows(const ConvSpec& spec) const;
  std::int64_t raw_rows(const ConvSpec& spec) const;  ///< of such a box
  /// Whether tensor maps are asked for pixels at all, if what a run needs is no larger than a box.
  bool maps_pixels(const ConvSpec& spec) const;
  /// Elements of a plane from the first that a run needs to the last, at most.
  std::int64_t raw_elements(const ConvSpec& spec) const;
  static constexpr int kMostBox = 256;  ///< elements along an axis
  /// Elements of a channel's copy, at most, and of a run's copies, if copies_ahead.
  std::int64_t raw_pitch(const ConvSpec& spec) const;
  std::int64_t raw_run_elements(const ConvSpec& spec) const;
  std::int64_t raw_bytes(const ConvSpec& spec) const;  ///< of a step
  std::int64_t raw_first_byte(const ConvSpec& spec) const;
  /// Whether all pixels can be packed before: each of four loading threads asks for the same number of slices.
  bool can_pack_pixels(const ConvSpec& spec) const;
  /// Residues of input rows modulo the stride, as phases() of columns.
  static int row_phases(const ConvSpec& spec);
  /// Packed pixels of an image, a slice and two residues: a grid of as many rows as taps of all outputs reach.
  static std::int64_t packed_image(const ConvSpec& spec);
  /// Behind the last image, which runs at the end of a plane, or of the batch, ask for.
  std::int64_t packed_tail(const ConvSpec& spec) const;
  std::int64_t packed_pixels(const ConvSpec& spec) const;  ///< of 16 bytes each, the tail included
  std::int64_t packed_pixel_bytes(const ConvSpec& spec) const;
  /// Units (a tap of a slice) of one step, rounded up to a whole number of multiplications.
  std::int64_t units(const ConvSpec& spec) const;
  std::int64_t taps(const ConvSpec& spec) const { return filter_rows * spec.filter.s; }  ///< of a step
  std::int64_t weight_bytes(const ConvSpec& spec) const { return units(spec) * block_k * 16; }
  /// Of those, what comes to a stage.
  std::int64_t stage_weight_bytes(const ConvSpec& spec) const {
    return weights_come_with_steps() ? weight_bytes(spec) : 0;
  }
  std::int64_t stage_bytes(const ConvSpec& spec) const { return weights_in_stage(spec) + stage_weight_bytes(spec); }
  bool packs_weights() const { return !raw_weights; }
  bool weights_come_with_steps() const { return !resident; }
  /// Whether a step's weights are a box of w, whose rows are output channels, and they are an operand as they lie there
  /// or what a lane reads of a row are vectors.
  bool can_take_raw_weights(const ConvSpec& spec) const;
  /// Neighbouring channels of which a lane holds weights in registers: a quarter of a chunk.
  int lane_channels(const ConvSpec& spec) const { return chunk_channels(spec) / 4; }
  /// Whether raw weights are an operand as they arrive, swizzled by the copy engine, floats rounded: a row of one tap
  /// is a line of shared memory.
  bool swizzles_weights(const ConvSpec& spec) const { return raw_weights && taps(spec) == 1; }
  /// Whether multiplying threads round raw weights in registers, and multiply from there: of several taps, the input
  /// channels of one are not neighbours.
  bool multiplies_registers(const ConvSpec& spec) const { return raw_weights && taps(spec) > 1; }
  /// Which of a chunk's channels lies at a place of its slices: the order in which lanes hold weights in registers.
  std::int64_t channel_at(const ConvSpec& spec, std::int64_t place) const;
  /// Where the weights of a stage start.
  std::int64_t weights_in_stage(const ConvSpec& spec) const;
  /// Of the weights that do not come with steps.
  std::int64_t kept_weight_bytes(const ConvSpec& spec) const { return resident ? steps(spec) * weight_bytes(spec) : 0; }
  /// Steps of a tile: chunks of channels times filter rows.
  std::int64_t steps(const ConvSpec& spec) const;
  std::int64_t steps_of_split(const ConvSpec& spec) const;
  std::int64_t tiles_k(const ConvSpec& spec) const;
  std::int64_t tiles_of_plane(const ConvSpec& spec) const;
  /// Tiles over images, each of all their positions or of some.
  std::int64_t tiles_of_images(const ConvSpec& spec) const;
  std::int64_t tiles(const ConvSpec& spec) const;  ///< splits counted apart
  // Per thread. Together they are no more than what the launch has, which is kLaunchRegisters for each.
  static constexpr int kLaunchRegisters = 168;
  int consumer_registers(const ConvSpec& spec) const;
  int loader_registers(const ConvSpec& spec) const;
  int wanted_registers(const ConvSpec& spec) const;
  int raw_weight_registers(const ConvSpec& spec) const;  ///< of a multiplying thread
  /// Whether a multiplying thread gets what it needs.
  bool registers_fit(const ConvSpec& spec) const;
  /// Of a loading thread, for elements in flight.
  int load_registers(const ConvSpec& spec) const { return loader_registers(spec) - 56; }
  /// Elements before the first that a run stores: its first vectors are stored in part.
  int lead(const ConvSpec& spec) const { return images > 0 || slack(spec) == 0 ? 0 : sector_elements(spec); }
  /// Whether warpgroups can add their sums where outputs are staged, and each has a step of every tile.
  bool can_share_steps(const ConvSpec& spec) const;
  /// Whether outputs are staged in their own type, else as floats: sums of splits, and what a residual is added to.
  bool stages_elements(const ConvSpec& spec) const {
    return spec.dtype == DataType::f32 || (splits == 1 && !spec.epilogue.residual);
  }
  int staged_bytes(const ConvSpec& spec) const;  ///< of a staged output
  /// Of an output where a tile writes it: y, or the sums of splits.
  std::int64_t written_bytes(const ConvSpec& spec) const { return splits > 1 ? 4 : element_bytes(spec.dtype); }
  /// Whether the copy engine stores staged runs (NCHW). It is slower where planes of floats start in the middle of a
  /// line of 128 bytes, and cannot add a residual on the way.
  bool stores_bulk(const ConvSpec& spec) const;
  /// Outputs of a lane's store where runs are whole images: a vector, if no vector crosses the end of a row or plane.
  int store_width(const ConvSpec& spec) const;
  /// Staged outputs of a channel's row while it is staged for its store, such that lanes meet in few banks. NHWC: of a
  /// position's 64 channels.
  int staging_pitch(const ConvSpec& spec) const;
  /// Positions a consumer stages at a time (NHWC).
  int store_columns(const ConvSpec& spec) const;
  /// Channels one instruction writes (NHWC).
  int store_vector(const ConvSpec& spec) const;
  std::int64_t staging_bytes(const ConvSpec& spec) const;
  std::int64_t weights_first_byte(const ConvSpec& spec) const;
  std::int64_t staging_first_byte(const ConvSpec& spec) const;
  /// Whether the last unit of a step has no partner and is multiplied together with zeros.
  bool has_zeros(const ConvSpec& spec) const { return taps(spec) * slices % 2 != 0; }
  std::int64_t zeros_first_byte(const ConvSpec& spec) const;
  std::int64_t barriers_first_byte(const ConvSpec& spec) const;
  std::int64_t shared_bytes(const ConvSpec& spec) const;
  /// Of each warpgroup, that it has multiplied; of each pair of warps that add sums.
  int share_barriers() const { return share == Share::tile ? 0 : share == Share::turns ? 2 : 4; }
  /// How the kernel before the convolution packs weights: a block takes `slices` slices of `channels` output channels.
  struct Packing {
    int channels = 32;  ///< a power of two, divides block_k
    int slices = 1;
    bool operator==(const Packing&) const = default;
  };
  static constexpr std::int64_t kMostPackingBytes = 48 << 10;  // what several blocks of an SM can have
  Packing packing(const ConvSpec& spec) const;
  /// Words of w that a block of `packing` reads for each output channel, and words from one to the next in shared
  /// memory.
  static std::int64_t piece_words(const ConvSpec& spec, const Packing& packing);
  static std::int64_t piece_pitch(const ConvSpec& spec, const Packing& packing);
  static std::int64_t packing_bytes(const ConvSpec& spec, const Packing& packing);  ///< of shared memory
  std::int64_t packing_blocks(const ConvSpec& spec, const Packing& packing) const;
  /// Slices of all chunks, those beyond the last channel included.
  std::int64_t packed_slices(const ConvSpec& spec) const;
  std::int64_t packed_rows(const ConvSpec& spec) const;  ///< of 16 bytes
  std::int64_t packed_weight_bytes(const ConvSpec& spec) const;
  std::int64_t partial_sum_stride(const ConvSpec& spec) const;  ///< floats from one split's sums to the next's
  std::int64_t partial_sum_bytes(const ConvSpec& spec) const;
  bool operator==(const TensorTiling&) const = default;
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
