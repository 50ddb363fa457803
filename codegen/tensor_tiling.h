// The numbers of the tensor family: decisions, and what follows from them and the spec. Its members are defined in
// tensor_tiling.cpp (the grid of positions, steps, tiles), tensor_memory.cpp (shared memory, registers) and
// tensor_packing.cpp (kernels before the convolution).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "jitconv/spec.h"

namespace jitconv::codegen {

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
  int columns = 256;  ///< positions of a run: the N of a multiplication, a multiple of 8
  /// From a run to the next: outputs, a multiple of a sector or whole images, or, where boxes are stored, positions.
  int window = 248;
  int images = 0;         ///< consecutive images of a run; 0: its window lies in one image
  int filter_rows = 1;    ///< of a step: 1, or R, and then a pixel is loaded once for all rows
  int slices = 4;         ///< of 16 bytes of channels of a pixel: 1, or even
  int stages = 3;         ///< steps in flight
  int team_warps = 1;     ///< loading warps that share a step; 4 / team_warps teams take steps in turn
  bool resident = false;  ///< all weights stay in shared memory; else they come with each step
  /// Weights come with each step as they lie in w; else a kernel before the convolution packs them.
  bool raw_weights = false;
  /// How pixels become operand rows in shared memory: lanes load them; the copy engine brings them as they lie in x,
  /// and lanes make rows of that; or, of NHWC tensors, the copy engine brings rows, swizzled: it walks over the grid
  /// (im2col), padding included. Of NCHW tensors it can, too, if a kernel before the convolution transposes them: see
  /// convolved_spec().
  enum class Pixels : std::uint8_t { loaded, copied, walked, transposed };
  Pixels pixels = Pixels::loaded;
  int load_batch = 0;    ///< pixels, or vectors, of a lane in flight, if they are loaded
  int copies_ahead = 0;  ///< steps that are on their way to a loading warp, if pixels are copied
  int splits = 1;        ///< blocks that share the reduction of a tile, each a range of steps
  /// Boxes of a multiplying warpgroup's outputs that are staged, or on their way to y, at a time, if the copy engine
  /// stores them (NHWC); 0: threads do, or it stores runs (NCHW).
  int staged_boxes = 0;

  /// Warpgroups that have accumulators for different outputs of a tile.
  int tile_consumers() const { return share == Share::tile ? 2 : 1; }
  int runs() const { return 64 * tile_consumers() / block_k; }
  bool loads_pixels() const { return pixels == Pixels::loaded; }
  bool copies_pixels() const { return pixels == Pixels::copied; }
  bool transposes_pixels() const { return pixels == Pixels::transposed; }
  bool walks_pixels() const { return pixels == Pixels::walked || transposes_pixels(); }
  /// What the convolution's kernel computes, and what all other members are asked about: `spec`, unless pixels are
  /// transposed. Then it is the convolution of the NHWC tensor that they are made, which has those rows and columns of
  /// x that taps may meet: if only one residue modulo the stride does, the stride is 1.
  ConvSpec convolved_spec(const ConvSpec& spec) const;
  static constexpr int kThreads = 384;
  static constexpr std::int64_t kBehindPlane = 1024;  ///< outputs, or positions, of a last tile that do not exist
  /// Bytes of a row of a matrix operand's half: of a slice of a pixel, of a unit of an output channel.
  static constexpr std::int64_t kRowBytes = 16;
  static int slice_channels(const ConvSpec& spec);  ///< 16 bytes of channels
  static std::int64_t plane(const ConvSpec& spec);  ///< outputs of a channel of an image
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
  /// A step's taps, r * S + s with r counted within the step, in the order of their pixels' places in shared memory. A
  /// multiplication's two units must come in ascending order. Where rows of positions are shorter than what a filter
  /// row reaches, the end of one filter row lies behind the start of the next.
  std::vector<int> tap_order(const ConvSpec& spec) const;
  /// Place of a tap's first pixel within a phase.
  static std::int64_t tap_place(const ConvSpec& spec, int tap);
  /// Rows of y that end inside a run and go on behind a gap, at most.
  int row_ends(const ConvSpec& spec) const;
  /// Outputs after its window that a run computes, because the runs of some channels start late.
  static int slack(const ConvSpec& spec);
  /// Outputs of a channel that share 32 bytes of y: one, where other channels lie between them.
  static int sector_elements(const ConvSpec& spec);
  /// Positions from one row of the grid to the next.
  static std::int64_t pitch(const ConvSpec& spec);
  /// What runs count of a row of outputs: these, and, of runs that are stored as boxes, positions behind the last up to
  /// the end of a run, as no run goes on in another row. Where rows follow each other without a gap, every run does.
  std::int64_t run_row(const ConvSpec& spec) const;
  /// Rows and positions from one image of a run to the next.
  std::int64_t image_rows(const ConvSpec& spec) const;
  std::int64_t image_positions(const ConvSpec& spec) const { return image_rows(spec) * pitch(spec); }
  /// Positions that taps of a step reach behind a run.
  std::int64_t reach(const ConvSpec& spec) const;
  std::int64_t run_pixels(const ConvSpec& spec) const { return columns + reach(spec); }
  /// Pixels from one slice of a run to the next, such that stores of neighbouring lanes meet in no bank.
  std::int64_t slice_pitch(const ConvSpec& spec) const;
  /// 16-byte places from a pixel of a slice to the next pixel, and from a slice to the next.
  std::int64_t pixel_step() const { return walks_pixels() ? slices : 1; }
  std::int64_t slice_step(const ConvSpec& spec) const { return walks_pixels() ? 1 : slice_pitch(spec); }
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
  /// Elements of a channel's copy, at most, and of a run's copies, if pixels are copied.
  std::int64_t raw_pitch(const ConvSpec& spec) const;
  std::int64_t raw_run_elements(const ConvSpec& spec) const;
  std::int64_t raw_bytes(const ConvSpec& spec) const;  ///< of a step
  std::int64_t raw_first_byte(const ConvSpec& spec) const;
  /// Residues of input rows modulo the stride, as phases() of columns.
  static int row_phases(const ConvSpec& spec);
  /// Of a transposed tensor.
  std::int64_t packed_pixel_bytes(const ConvSpec& spec) const;
  /// Of a pixel of it: of all its channels.
  static std::int64_t pixel_slices(const ConvSpec& spec);
  /// How a kernel transposes x: a block makes `slices` slices of each of `pixels` pixels of an image.
  struct Transposition {
    int pixels, slices;
  };
  static Transposition transposition(const ConvSpec& spec);
  /// Units (a tap of a slice) of one step, rounded up to a whole number of multiplications.
  std::int64_t units(const ConvSpec& spec) const;
  std::int64_t taps(const ConvSpec& spec) const { return filter_rows * spec.weight.s; }  ///< of a step
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
  /// Of a loading thread, for elements in flight. Of floats, a batch of 17 vectors is as much as ptxas does not spill,
  /// and faster than two (B, NHWC: 2.62 ms, 2.71); of 16-bit vectors it is slower (1.66, 1.49).
  int load_registers(const ConvSpec& spec) const {
    return loader_registers(spec) - (loads_vectors(spec) && spec.dtype == DataType::f32 ? 52 : 56);
  }
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
  bool stores_boxes() const { return staged_boxes > 0; }
  /// Whether the copy engine can store boxes of y (NHWC): it adds no residual, and a box that lies in y but for its end
  /// is written up to there, but none begins before y, as the part of a run behind a row's end would.
  bool can_store_boxes(const ConvSpec& spec) const;
  /// Channels of y in a row of 128 bytes, and such rows of a position that a multiplying warpgroup stages.
  static int box_row_channels(const ConvSpec& spec) { return static_cast<int>(128 / element_bytes(spec.dtype)); }
  static int box_rows(const ConvSpec& spec) { return 64 / box_row_channels(spec); }
  /// Whether positions of the grid are outputs, one after the other, so that a box goes on where a row ends.
  static bool boxes_cross_rows(const ConvSpec& spec) { return gap(spec) == 0; }
  std::int64_t box_bytes(const ConvSpec& spec) const;
  /// Outputs of a lane's store where runs are whole images: a vector, if no vector crosses the end of a row or plane.
  int store_width(const ConvSpec& spec) const;
  /// Staged outputs of a channel's row while it is staged for its store, such that lanes meet in few banks. NHWC: of a
  /// position's 64 channels.
  int staging_pitch(const ConvSpec& spec) const;
  /// Positions a consumer stages at a time (NHWC). Where boxes are stored, an equal part of a run; 0 if there is none.
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

}  // namespace jitconv::codegen
