// The numbers of a wgmma kernel that follow from the problem and the tiling. Members are defined in geometry.cpp (runs,
// steps, tiles, what comes of the input and the weights) and memory.cpp (shared memory, staging, registers).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "codegen/pack_weights/tiling.h"
#include "codegen/wgmma/grid.h"
#include "codegen/wgmma/tiling.h"

namespace jitconv::codegen {

class WgmmaGeometry : public PixelGrid {
 public:
  /// The grid's problem must outlive the object; the tiling is copied.
  WgmmaGeometry(const PixelGrid& grid, const WgmmaTiling& tiling);
  WgmmaGeometry(const Problem& problem, const WgmmaTiling& tiling) : WgmmaGeometry(PixelGrid(problem), tiling) {}

  const WgmmaTiling& tiling() const { return tiling_; }
  /// Sets what no number depends on that is worked out beforehand.
  void set_stages(int stages) { tiling_.pipeline.stages = stages; }
  void set_teams(int team_warps, int load_batch) {
    tiling_.producer.team_warps = team_warps;
    tiling_.producer.load_batch = load_batch;
  }
  void set_split_k(int split_k) { tiling_.split_k = split_k; }

  // Steps and tiles.
  int chunk_channels() const { return tiling_.pipeline.slices * slice_channels(); }  ///< of a step
  std::int64_t taps() const { return taps_; }                                        ///< of a step
  ColumnFold fold() const { return {problem().columns.taps, tiling_.tile.folded_columns}; }
  /// A step's taps, r * fold().taps() + t with r counted within the step, in the order of their pixels' places in
  /// shared memory. A multiplication's two units must come in ascending order. Where rows of positions are shorter than
  /// what a filter row reaches, the end of one filter row lies behind the start of the next.
  std::vector<int> tap_order() const;
  /// Place of the first pixel of such a tap within its phase.
  std::int64_t tap_place(int tap) const;
  /// Units (a tap of a slice) of one step, rounded up to a whole number of multiplications.
  std::int64_t units() const { return units_; }
  /// Whether the last unit of a step has no partner and is multiplied together with zeros.
  bool has_zeros() const { return taps_ * tiling_.pipeline.slices % 2 != 0; }
  std::int64_t steps() const { return steps_; }  ///< of a tile: chunks of channels times filter rows
  std::int64_t steps_of_split() const;
  std::int64_t tiles_k() const { return tiles_k_; }
  std::int64_t tiles_of_plane() const;
  /// Tiles over images, each of all their positions or of some.
  std::int64_t tiles_of_images() const { return tiles_of_images_; }
  std::int64_t tiles() const { return all_tiles_ * tiling_.split_k; }  ///< splits counted apart

  // Runs of positions.
  /// Positions that taps of a step reach behind a run.
  std::int64_t reach() const { return reach_; }
  std::int64_t run_pixels() const { return tiling_.tile.columns + reach_; }
  /// Positions that a run computes more than it stores if columns are folded, else 0: their last group's sums belong to
  /// outputs so many positions before.
  std::int64_t fold_reach() const { return (fold().groups() - 1) * problem().columns.dilation; }
  /// Rows of y that end inside a run and go on behind a gap, at most.
  int row_ends() const;
  /// What runs count of a row of outputs: these, and, of runs that are stored as boxes, positions behind the last up to
  /// the end of a run, as no run goes on in another row. Where rows follow each other without a gap, every run does.
  std::int64_t run_row() const;
  /// Rows and positions from one image of a run to the next.
  std::int64_t image_rows() const { return PixelGrid::image_rows(tiling_.pipeline.filter_rows); }
  std::int64_t image_positions() const { return image_rows() * pitch(); }
  /// Pixels from one slice of a run to the next, such that stores of neighbouring lanes have no bank conflicts.
  std::int64_t slice_pitch() const;
  /// 16-byte places from a pixel of a slice to the next pixel, and from a slice to the next.
  std::int64_t pixel_step() const { return tiling_.uses_im2col() ? tiling_.pipeline.slices : 1; }
  std::int64_t slice_step() const {
    return tiling_.uses_im2col()   ? 1
           : tiling_.uses_planes() ? slice_channels() * kPartBytes / kRowBytes
                                   : slice_pitch();
  }
  std::int64_t phase_bytes() const { return phase_bytes_; }  ///< from the pixels of a phase to those of the next
  std::int64_t run_bytes() const { return phases() * phase_bytes(); }  ///< of one part of operands
  std::int64_t input_bytes() const { return tiling_.runs() * run_bytes(); }

  // Pixels that threads load.
  /// Loads of a warp, for each phase, of a run's pixels.
  std::int64_t load_items() const;
  /// Registers of a producer thread for its part of one of these. A 16-bit load has one for itself.
  int load_item_registers() const { return !loads_vectors() ? chunk_channels() : load_bytes() == 2 ? 8 : 4; }

  // Pixels that TMA brings in im2col mode.
  /// Whether it can: its limits, and no channels of another group come along.
  bool can_use_im2col() const;
  /// Where the walk starts, along w and h, and what it goes up to but for the extent.
  std::array<std::int64_t, 2> walk_lower() const { return {-problem().columns.pad, -problem().rows.pad}; }
  std::array<std::int64_t, 2> walk_upper() const;
  /// What it brings of a step, for which run_bytes() keeps whole kilobytes.
  std::int64_t walked_bytes() const;

  // Pixels that TMA brings as boxes of planes: parts of a run, [part][channel][kPartPixels].
  static constexpr std::int64_t kPartPixels = 64, kPartBytes = 128;  ///< of a channel
  /// Whether it can: pixels of one tap, which lie as outputs do, whole vectors of 16 bytes.
  bool can_use_planes() const;
  std::int64_t parts() const;  ///< of a run

  // Pixels that TMA brings as they lie in x.
  /// Whether it can bring a step's pixels: what it copies are whole vectors of 16 bytes.
  bool copies_fit() const;
  /// Whether what it brings of a run's pixels is a box of x.
  bool copies_boxes() const { return copies_boxes_; }
  /// Whether it is a box that has rows of x, those that the filter's only row meets, and not a part of each plane.
  bool copies_rows() const { return copies_rows_; }
  std::int64_t raw_rows() const;  ///< of such a box
  /// Elements of a channel's copy, at most, and of a run's copies.
  std::int64_t raw_pitch() const { return raw_pitch_; }
  std::int64_t raw_run_elements() const { return raw_run_elements_; }
  std::int64_t raw_bytes() const { return raw_bytes_; }  ///< of a step
  std::int64_t raw_first_byte() const;

  // Weights.
  /// Of a step, both parts if operands are split.
  std::int64_t weight_bytes() const { return tiling_.operand_parts() * units_ * tiling_.tile.channels * kRowBytes; }
  /// Of those, what comes to a stage.
  std::int64_t stage_weight_bytes() const { return tiling_.keeps_weights() ? 0 : weight_bytes(); }
  /// Of the weights that do not come with steps.
  std::int64_t kept_weight_bytes() const { return tiling_.keeps_weights() ? steps_ * weight_bytes() : 0; }
  std::int64_t weights_in_stage() const { return weights_in_stage_; }  ///< where the weights of a stage start
  std::int64_t stage_bytes() const { return weights_in_stage() + stage_weight_bytes(); }
  /// Whether a step's weights are a box of w, whose rows are output channels, and they are an operand as they lie there
  /// or what a lane reads of a row are vectors.
  bool can_take_unpacked_weights() const;
  /// Neighbouring channels of which a lane holds weights in registers: a quarter of a chunk.
  int lane_channels() const { return chunk_channels() / 4; }
  /// Whether unpacked weights are an operand as they arrive, swizzled by TMA, floats rounded: a row of one tap is a
  /// line of shared memory.
  bool swizzles_weights() const { return !tiling_.packs_weights() && taps_ == 1; }
  /// Whether consumers round unpacked weights in registers, and multiply from there: of several taps, the input
  /// channels of one are not neighbours.
  bool multiplies_registers() const { return !tiling_.packs_weights() && taps_ > 1; }
  /// Which of a chunk's channels lies at a place of its slices: the order in which lanes hold weights in registers.
  std::int64_t channel_at(std::int64_t place) const;
  /// Rows of 16 bytes of packed weights; 0 where they are not packed.
  std::int64_t packed_rows() const;

  // Registers per thread. Together they are no more than what the launch has, kLaunchRegisters for each.
  int consumer_registers() const;
  int producer_registers() const;
  int wanted_registers() const;
  /// Multiplications of larger parts that a step's accumulators take at a time, in order, if operands are split: as few
  /// groups as the interval allows, of about one size.
  std::vector<int> promotion_groups() const;
  /// Whether a consumer thread gets what it needs.
  bool registers_fit() const;
  /// Of a producer thread, for elements in flight. Of floats, a batch of 17 vectors is as much as ptxas does not spill,
  /// and faster than two (B, NHWC: 2.62 ms, 2.71); of 16-bit vectors it is slower (1.66, 1.49).
  int load_registers() const;

  // Outputs.
  /// Whether the tile may fold its columns: threads store runs of NCHW planes, and all channels have rows.
  bool can_fold_columns() const;
  /// Elements before the first that a run stores: its first vectors are stored in part.
  int lead() const { return tiling_.tile.images > 0 || slack() == 0 ? 0 : sector_elements(); }
  /// Whether consumers can add their sums where outputs are staged, and each has a step of every tile.
  bool can_slice_k() const;
  /// Whether outputs are staged in their own type, else as floats: sums of splits, and what a residual is added to.
  bool stages_elements() const;
  int staged_bytes() const;  ///< of a staged output
  /// Whether a tile writes sums, as floats whatever the operands: those of a split, or of phases (phases.h).
  bool stores_sums() const { return tiling_.split_k > 1 || problem().output.type != problem().input.type; }
  /// Of an output where a tile writes it: y, or sums.
  std::int64_t written_bytes() const { return stores_sums() ? 4 : problem().output.element_bytes(); }
  /// Whether TMA stores staged runs (NCHW). It is slower where planes of floats start in the middle of a
  /// line of 128 bytes, and cannot add a residual on the way.
  bool stores_bulk() const;
  /// Whether TMA can store boxes of y (NHWC): it adds no residual, and a box that lies in y but for its end is written
  /// up to there, but none begins before y, as the part of a run behind a row's end would.
  bool can_store_boxes() const;
  std::int64_t box_bytes() const;
  /// Outputs of a lane's store where runs are whole images: a vector, if no vector crosses the end of a row or plane.
  int store_width() const;
  /// Staged outputs of a channel's row while it is staged for its store, such that lanes have few bank conflicts. NHWC:
  /// of a position's 64 channels.
  int staging_pitch() const;
  /// Floats before those of a run where its folded columns' sums of outputs before it are left.
  int staged_before() const;
  /// Positions a consumer stages at a time (NHWC). Where boxes are stored, an equal part of a run; 0 if there is none.
  int store_columns() const;
  /// Channels one instruction writes (NHWC).
  int store_vector() const;
  std::int64_t partial_sum_stride() const;  ///< floats from one split's sums to the next's
  std::int64_t partial_sum_bytes() const;

  // Shared memory, from first to last: stages, kept weights, raw pixels, staged outputs, zeros, barriers.
  std::int64_t weights_first_byte() const;
  std::int64_t staging_first_byte() const;
  std::int64_t staging_bytes() const;
  std::int64_t zeros_first_byte() const;
  std::int64_t barriers_first_byte() const;
  std::int64_t shared_bytes() const;
  /// Of each warpgroup, that it has multiplied; of each pair of warps that add sums.
  int schedule_barriers() const;

 private:
  std::int64_t phase_bytes_of_runs() const;
  void work_out_raw_pixels();
  /// Whether tensor maps are asked for pixels at all, if what a run needs is no larger than a box.
  bool maps_pixels() const;
  /// Elements of a plane from the first that a run needs to the last, at most.
  std::int64_t raw_elements() const;
  int unpacked_weight_registers() const;  ///< of a consumer thread
  int most_consumer_registers() const;    ///< of a thread

  WgmmaTiling tiling_;
  std::int64_t taps_, units_, steps_, reach_, phase_bytes_, weights_in_stage_;
  std::int64_t tiles_k_, tiles_of_images_, all_tiles_;
  // Of pixels that TMA brings as they lie in x.
  bool copies_rows_ = false, copies_boxes_ = false;
  std::int64_t raw_pitch_ = 0, raw_run_elements_ = 0, raw_bytes_ = 0;
};

}  // namespace jitconv::codegen
