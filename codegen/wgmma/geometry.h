// The numbers of a wgmma kernel that follow from the problem and the tiling: steps of the pipeline, runs of positions,
// tiles of the grid. What comes of them is worked out by classes of their own: pixels.h, store.h, memory.h and
// registers.h. Which tilings are possible is in limits.h.
#pragma once

#include <cstdint>
#include <vector>

#include "codegen/pack_weights/tiling.h"
#include "codegen/wgmma/grid.h"
#include "codegen/wgmma/pixels.h"
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

  /// How a run's pixels lie in a stage, and how they come there.
  const WgmmaPixels& pixels() const { return pixels_; }

  // Steps.
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
  /// How a thread splits pixels in place that TMA brought: the rows that it reads before it stores any, and how often
  /// it does that for a phase of a run.
  struct SplitRows {
    std::int64_t batch, batches;
  };
  SplitRows split_rows() const;
  /// Multiplications of larger parts that a step's accumulators take at a time, of `all` in order, if operands are
  /// split: as few groups as the interval allows, of about one size.
  std::vector<int> promotion_groups(int all) const;
  /// Whether the channels of a tile are of one of tile_phases(), and a step multiplies the taps only that it meets.
  bool skips_zero_taps() const;
  /// Units that a step multiplies: all units(), or fewer if zero taps are skipped. Phases then differ: the first
  /// function has their mean, the second the most.
  std::int64_t multiplied_units() const;
  std::int64_t most_multiplied_units() const;

  // Tiles.
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

  // Weights of a step.
  /// Both parts if operands are split.
  std::int64_t weight_bytes() const { return tiling_.operand_parts() * units_ * tiling_.tile.channels * kRowBytes; }
  /// The part of weight_bytes() that has a place in a stage: all, or nothing if weights are kept.
  std::int64_t stage_weight_bytes() const { return tiling_.keeps_weights() ? 0 : weight_bytes(); }
  /// Whether a stage gets the weights of the taps only that the tile's phase meets.
  bool copies_met_taps() const { return skips_zero_taps() && !tiling_.keeps_weights(); }
  /// The part of stage_weight_bytes() that is copied for a step. If it depends on the phase, the mean of the phases.
  std::int64_t copied_weight_bytes() const {
    return copies_met_taps() ? stage_weight_bytes() / units_ * multiplied_units() : stage_weight_bytes();
  }
  /// Bytes of weights that are kept, and so do not come with steps.
  std::int64_t kept_weight_bytes() const { return tiling_.keeps_weights() ? steps_ * weight_bytes() : 0; }
  /// Neighbouring channels of which a lane holds weights in registers: a quarter of a chunk.
  int lane_channels() const { return chunk_channels() / 4; }
  /// Whether unpacked weights are an operand as they arrive, swizzled by TMA, floats rounded: a row of one tap is a
  /// line of shared memory.
  bool swizzles_weights() const { return tiling_.weights == WgmmaTiling::Weights::unpacked && taps_ == 1; }
  /// Whether consumers round unpacked weights in registers, and multiply from there: of several taps, the input
  /// channels of one are not neighbours.
  bool multiplies_registers() const { return tiling_.weights == WgmmaTiling::Weights::unpacked && taps_ > 1; }
  /// Which of a chunk's channels lies at a place of its slices: the order in which lanes hold weights in registers.
  std::int64_t channel_at(std::int64_t place) const;
  /// Rows of 16 bytes of packed weights; 0 where they are not packed.
  std::int64_t packed_rows() const;

 private:
  WgmmaTiling tiling_;
  std::int64_t reach_;
  WgmmaPixels pixels_;
  std::int64_t taps_, units_, steps_;
  std::int64_t tiles_k_, tiles_of_images_, all_tiles_;
};

}  // namespace jitconv::codegen
