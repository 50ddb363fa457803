// Candidates of the wgmma family: how many positions a multiplication takes, how channels are cut into steps, how the
// producer warps share them, and over how many blocks a reduction is split.
#include <algorithm>
#include <utility>

#include "codegen/arithmetic.h"
#include "codegen/costs/costs.h"
#include "codegen/f16_pairs.h"
#include "codegen/gather_patches/tiling.h"
#include "codegen/phases.h"
#include "codegen/split_operands.h"
#include "codegen/transpose_input/tiling.h"
#include "codegen/transpose_weights/pass.h"
#include "codegen/wgmma/family.h"
#include "codegen/wgmma/geometry.h"
#include "codegen/wgmma/limits.h"
#include "codegen/wgmma/memory.h"
#include "codegen/wgmma/price.h"
#include "codegen/wgmma/registers.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

constexpr int kMostStages = 8, kMostColumns = WgmmaTiling::kMostColumns, kFewestBoxes = 2, kMostBoxes = 4;
constexpr std::int64_t kMostTapsOfStep = 25;
constexpr int kMostColumnsOfOnlyStep = 112;
constexpr std::int64_t kWideFilter = 16;

using Preparation = WgmmaTiling::Preparation;

class Search {
 public:
  Search(const Problem& problem, const Target& target, CandidateList& into)
      : into_(into),
        problem_(problem),
        target_(target),
        grid_(problem),
        price_(problem, target, into.costs().wgmma),
        range_cost_(problem.arithmetic == Arithmetic::f16x3 ? price_.of_ranges() : 0),
        weight_transposition_(problem.asked_weight ? weight_transposition_cost(problem, into.costs().fma) : 0),
        leaves_pixels_(!problem.phases.stores_pixels && problem.is_sub_pixel() && !problem.phases.rows.has_zeros() &&
                       !problem.phases.columns.has_zeros() && can_store_pixels(problem, {}) &&
                       can_write_phases(problem)) {}

  /// For candidates that first transpose or split the input of `source`, or gather its patches; `problem` is the
  /// convolution that remains.
  Search(const Problem& problem, const Target& target, CandidateList& into, const Problem& source, Preparation by)
      : Search(problem, target, into) {
    preparation_ = by;
    preparation_cost_ = by == Preparation::gathering ? price_.of_gathering(source) : price_.of_transposition(source);
  }

  /// Says what left no candidate, if none is left.
  std::string run() {
    using Schedule = WgmmaTiling::Schedule;
    for (const auto& [schedule, channels] :
         {std::pair{Schedule::cooperative, 128}, std::pair{Schedule::cooperative, 64},
          std::pair{Schedule::pingpong, 64}, std::pair{Schedule::sliced_k, 64}}) {
      if (channels == 128 && problem_.k <= 64) continue;
      const bool splits = splits_floats(problem_.arithmetic);
      // can_slice_k() says so, too, but only of each tiling.
      if (schedule == Schedule::sliced_k && problem_.output.layout() == Layout::nhwc) continue;
      for (int columns = kMostColumns; columns >= 16; columns -= 8) {
        WgmmaTiling tiling;
        tiling.schedule = schedule;
        tiling.tile.channels = channels;
        tiling.preparation = preparation_;
        tiling.stores_pixels = problem_.phases.stores_pixels;
        tiling.joins_groups = static_cast<int>(problem_.joined_groups);
        if (splits) tiling.promotion_interval = longest_promotion_interval(problem_.c * problem_.taps());
        if (tiling.f16_pairs = makes_pairs(); tiling.f16_pairs) runs(tiling, columns);
        tiling.f16_pairs = false;
        if (preparation_ == Preparation::splitting) continue;
        runs(tiling, columns);
        // can_fold_columns() says the rest.
        if (channels != 64 || schedule == Schedule::sliced_k || problem_.columns.taps == 1) continue;
        for (const int folded : {2, 4, 8}) {
          tiling.tile.folded_columns = folded;
          if (problem_.k * folded <= channels) runs(tiling, columns);
        }
      }
    }
    if (!into_.empty()) return {};
    return memory_decides_ || why_.empty() ? no_tile_fits(problem_, target_) : why_;
  }

 private:
  void runs(WgmmaTiling tiling, int columns) {
    tiling.tile.columns = columns;
    if (tiling.splits_operands() && !WgmmaRegisters(geometry(tiling.f16_pairs ? by_im2col(tiling) : tiling)).fit())
      return;
    filter_rows(tiling, 1);
    if (problem_.rows.taps > 1 && problem_.rows.stride == 1 && problem_.columns.stride == 1 &&
        problem_.taps() <= kMostTapsOfStep)
      filter_rows(tiling, static_cast<int>(problem_.rows.taps));
  }

  void filter_rows(WgmmaTiling tiling, int rows) {
    tiling.pipeline.filter_rows = rows;
    tiling.tile.images = images(tiling);
    const WgmmaGeometry runs = geometry(tiling);
    if (tiling.folds_columns() && !can_fold_columns(runs)) return;
    const int fold_reach = static_cast<int>(runs.fold_reach());
    boxes(tiling);
    tiling.tile.window = static_cast<int>(tiling.tile.images > 0 ? tiling.tile.images * problem_.output_plane()
                                                                 : window(tiling.tile.columns - fold_reach));
    if (tiling.tile.images == 0 && tiling.tile.window < tiling.tile.columns / 4) {
      if (tiling.folds_columns()) return;
      why_ = fmt::format("{} positions lie between rows of {} outputs, so a run of {} would hold too few outputs",
                         grid_.row_padding(), problem_.columns.output, kMostColumns);
      return;
    }
    // A narrower run that stores as much does the same with less.
    WgmmaTiling narrower = tiling;
    narrower.tile.columns -= 8;
    if (tiling.tile.columns > 16 &&
        (tiling.tile.images > 0 ? images(narrower) == tiling.tile.images
                                : window(narrower.tile.columns - fold_reach) == tiling.tile.window))
      return;
    slices(tiling);
  }

  /// Candidates that store runs as boxes, if at most a quarter of a row's positions is wasted.
  void boxes(WgmmaTiling tiling) {
    tiling.staged_boxes = kFewestBoxes;
    tiling.tile.window = tiling.tile.columns;
    const WgmmaGeometry runs = geometry(tiling);
    const WgmmaStore store(runs);
    if (can_store_boxes(runs, store) && store.store_columns() > 0 && 4 * problem_.columns.output >= 3 * runs.run_row())
      slices(tiling);
  }

  /// Whole images whose positions a run holds.
  int images(const WgmmaTiling& tiling) const {
    const std::int64_t used = (problem_.rows.output - 1) * grid_.pitch() + problem_.columns.output;
    if (used > tiling.tile.columns) return 0;
    const std::int64_t image = grid_.image_rows(tiling.pipeline.filter_rows) * grid_.pitch();
    const std::int64_t most = std::min((tiling.tile.columns - used) / image + 1, ceil_div(problem_.n, tiling.runs()));
    const std::int64_t elements = problem_.input_channels() * problem_.input_plane();
    return static_cast<int>(std::min(most, INT32_MAX / elements));
  }

  /// The largest window whose outputs, together with the gaps behind rows, fit the run's columns; 0 if none does.
  int window(int columns) const {
    // Where outputs of a channel are not neighbours in y, even numbers keep runs of loads_pairs() at words.
    const int sector = std::max(grid_.sector_elements(), 2);
    const std::int64_t plane = problem_.output_plane();
    for (std::int64_t window = std::min<std::int64_t>(columns / sector, ceil_div(plane, sector)) * sector; window > 0;
         window -= sector) {
      const std::int64_t outputs = std::min(window + grid_.alignment_outputs(), plane);
      if (outputs + grid_.row_ends(window) * grid_.row_padding() <= columns) return static_cast<int>(window);
    }
    return 0;
  }

  /// Whether tiles are of interest only where their reduction is split: sums of phases whose pixels another candidate
  /// stores itself.
  bool only_splits(const WgmmaTiling& tiling) const { return leaves_pixels_ && !tiling.folds_columns(); }

  void slices(WgmmaTiling tiling) {
    if (only_splits(tiling) &&
        (tiling.schedule == WgmmaTiling::Schedule::pingpong || geometry(tiling).tiles() > target_.sm_count))
      return;
    std::int64_t all = ceil_div(problem_.c, grid_.slice_channels());
    if (tiling.f16_pairs) all = round_up(all, kPairGroupRows);
    // Both parts of the weights of two slices may be more than shared memory holds of a wide filter's row.
    const bool wide = tiling.operand_parts() > 1 && problem_.columns.taps >= kWideFilter;
    for (const int slices : {1, 2, 4, 8}) {
      if (slices == 1 ? all > 1 && !wide : all == 1 || slices > round_up(all, 2)) continue;
      if (tiling.f16_pairs && slices % kPairGroupRows != 0) continue;
      tiling.pipeline.slices = slices;
      const WgmmaGeometry step = geometry(tiling);
      const std::int64_t chunk_bytes = std::min<std::int64_t>(step.chunk_channels(), problem_.c) *
                                       problem_.input_plane() * problem_.input.element_bytes();
      if (chunk_bytes > INT32_MAX) {
        why_ = fmt::format("a step's channels span {} bytes of x, offsets inside them have 32 bits", chunk_bytes);
        continue;
      }
      // Runs of pairs may be longer where no thread loads them: pixels() says where.
      if ((!tiling.f16_pairs && !holds_a_load(step)) || step.packed_rows() > INT32_MAX) continue;
      weights(step);
    }
  }

  void weights(const WgmmaGeometry& packed) {
    WgmmaTiling tiling = packed.tiling();
    pixels(packed);
    if (packed.tiles_k() * problem_.groups == 1) {
      tiling.weights = WgmmaTiling::Weights::resident;
      pixels(geometry(tiling));
    }
    // w has no zeros between joined groups.
    if (tiling.splits_operands() || tiling.folds_columns() || tiling.joins_groups > 1) return;
    tiling.weights = WgmmaTiling::Weights::unpacked;
    const WgmmaGeometry unpacked = geometry(tiling);
    if (can_take_unpacked_weights(unpacked) && WgmmaRegisters(unpacked).fit()) pixels(unpacked);
    if (!can_take_transposed_weights(unpacked)) return;
    tiling.weights = WgmmaTiling::Weights::transposed;
    pixels(geometry(tiling));
  }

  void pixels(const WgmmaGeometry& loaded) {
    WgmmaTiling tiling = loaded.tiling();
    const bool im2col = can_use_im2col(loaded);
    // A thread that loads vectors of four channels has no eight to make a row of. Whoever loads or converts pixels
    // needs more registers than who splits them in place.
    const bool no_threads =
        tiling.f16_pairs && (loaded.loads_vectors() || !holds_a_load(loaded) || !WgmmaRegisters(loaded).fit());
    // Where TMA's im2col mode cannot serve NHWC tensors, their weights are packed.
    const bool as_it_lies = preparation_ == Preparation::none;
    if (as_it_lies && !no_threads && (tiling.packs_weights() || problem_.input.layout() == Layout::nchw)) loads(tiling);
    if (im2col) loads(tiling = by_im2col(tiling));
    if (!as_it_lies || no_threads) return;
    if (can_use_planes(loaded)) {
      tiling.producer.pixels = WgmmaTiling::Pixels::planes;
      loads(tiling);
    }
    if (!tiling.stores_boxes() && can_align_planes(loaded)) copies(tiling, WgmmaTiling::Pixels::aligned);
    // If a tile has a single step of one slice, ptxas spills in the warps that convert copies.
    const bool spills =
        tiling.pipeline.slices == 1 && loaded.steps() == 1 && tiling.tile.columns > kMostColumnsOfOnlyStep;
    if (spills || tiling.stores_boxes() || !can_copy_pixels(loaded)) return;
    copies(tiling, WgmmaTiling::Pixels::converted);
  }

  void copies(WgmmaTiling tiling, WgmmaTiling::Pixels pixels) {
    tiling.producer.pixels = pixels;
    for (const int copies_ahead : {1, 2}) {
      tiling.producer.copies_ahead = copies_ahead;
      loads(tiling);
    }
  }

  void loads(WgmmaTiling tiling) {
    staged_loads(tiling);
    while (tiling.stores_boxes() && tiling.staged_boxes < kMostBoxes) {
      ++tiling.staged_boxes;
      staged_loads(tiling);
    }
  }

  void staged_loads(WgmmaTiling tiling) {
    memory_decides_ = true;
    tiling.pipeline.stages = 0;
    WgmmaGeometry geometry(grid_, tiling);
    const WgmmaMemory memory(geometry);
    const std::int64_t rest = memory.shared_bytes() + 128 + kMostStages * 16;
    const std::int64_t fit = (target_.shared_bytes_per_block - rest) / memory.stage_bytes();
    // A consumer gives a stage back when it has the next; where each has stages of its own, they are an even number.
    const bool own_stages = tiling.schedule == WgmmaTiling::Schedule::sliced_k;
    if (fit < (tiling.copies_pixels() || own_stages ? 4 : 2)) return;
    const int stages = static_cast<int>(std::min<std::int64_t>(fit, kMostStages));
    geometry.set_stages(own_stages ? stages - stages % 2 : stages);
    if (!tiling.loads_pixels()) return splits(geometry);
    const std::int64_t items = geometry.pixels().load_items();
    const WgmmaRegisters registers(geometry);
    const int in_flight = registers.for_loads() / registers.per_load();
    for (const int team_warps : {1, 2, 4}) {
      if (4 / team_warps > stages) continue;
      // As few batches as registers allow, all of about one size.
      const std::int64_t own = ceil_div(items, team_warps);
      const std::int64_t batches = ceil_div(own, in_flight);
      geometry.set_teams(team_warps, static_cast<int>(ceil_div(own, batches)));
      splits(geometry);
    }
  }

  /// Split only what leaves SMs without a tile.
  void splits(WgmmaGeometry& geometry) {
    const WgmmaTiling& tiling = geometry.tiling();
    geometry.set_split_k(1);
    const std::int64_t steps = geometry.steps(), tiles = geometry.tiles();
    // What is split leaves no second tile to take.
    const int most = tiling.schedule == WgmmaTiling::Schedule::pingpong || tiling.stores_boxes() ||
                             tiling.folds_columns() || tiling.stores_pixels
                         ? 1
                         : 32;
    for (int splits = only_splits(tiling) ? 2 : 1; splits <= most; ++splits) {
      if (splits > 1 && (splits > steps || tiles * splits > 2 * target_.sm_count)) break;
      const std::int64_t steps_of_split = ceil_div(steps, splits);
      if (ceil_div(steps, steps_of_split) != splits) continue;  // some would have nothing to do
      geometry.set_split_k(splits);
      add(geometry);
    }
  }

  void add(const WgmmaGeometry& geometry) {
    const WgmmaTiling& tiling = geometry.tiling();
    const WgmmaMemory memory(geometry);
    if (tiling.schedule == WgmmaTiling::Schedule::sliced_k && !can_slice_k(geometry, memory.store())) return;
    const std::int64_t tiles = geometry.tiles(), shared_bytes = memory.shared_bytes();
    // Blocks count tiles on past the last.
    if (tiles > INT32_MAX - 2 * target_.sm_count || shared_bytes > target_.shared_bytes_per_block) return;
    const Launch launch = {static_cast<std::uint32_t>(std::min<std::int64_t>(tiles, target_.sm_count)),
                           WgmmaTiling::kThreads, static_cast<std::uint32_t>(shared_bytes)};
    into_.add(tiling, launch,
              price_.of(geometry, memory.store(), tiles) + preparation_cost_ +
                  (tiling.weights == WgmmaTiling::Weights::unpacked ? weight_transposition_ : 0) +
                  (tiling.f16_pairs ? range_cost_ : 0));
  }

  WgmmaGeometry geometry(const WgmmaTiling& tiling) const { return {grid_, tiling}; }

  /// Whether floats become pairs in the kernel, or before it of x as it lies.
  bool makes_pairs() const {
    return problem_.arithmetic == Arithmetic::f16x3 &&
           (preparation_ == Preparation::none || preparation_ == Preparation::splitting);
  }

  static WgmmaTiling by_im2col(WgmmaTiling tiling) {
    tiling.producer.pixels = WgmmaTiling::Pixels::im2col;
    return tiling;
  }

  static bool holds_a_load(const WgmmaGeometry& geometry) {
    const WgmmaRegisters registers(geometry);
    return registers.per_load() <= registers.for_loads();
  }

  CandidateList& into_;
  const Problem& problem_;
  const Target& target_;
  PixelGrid grid_;
  WgmmaPrice price_;
  Preparation preparation_ = Preparation::none;
  std::int64_t preparation_cost_ = 0;
  std::int64_t range_cost_;            // of the kernels that find ranges
  std::int64_t weight_transposition_;  // its price, if weights must be brought into order and are not packed
  bool leaves_pixels_;                 // to another kernel, which interleaves them, and need not
  std::string why_;                    // the last rule that kept a tiling from being cut to shared memory
  bool memory_decides_ = false;        // none did for one of them
};

/// Candidates that transpose the input, an NCHW tensor, before they convolve, and that split it into pairs of fp16
/// numbers.
void add_transposed_candidates(const Problem& problem, const Target& target, CandidateList& into) {
  const auto add = [&](const Problem& prepared, Preparation by) {
    if (TransposeInputTiling::transposed_bytes(prepared) <= kMostPreparedBytes)
      Search(prepared, target, into, problem, by).run();
  };
  if (problem.input.layout() == Layout::nchw && TransposeInputTiling::pixel_slices(problem) > 1)
    add(transposed_problem(problem), Preparation::transposition);
  if (problem.arithmetic == Arithmetic::f16x3) add(split_problem(problem), Preparation::splitting);
}

/// Candidates that gather the patches of the input before they convolve.
void add_patch_candidates(const Problem& problem, const Target& target, CandidateList& into) {
  if (!can_gather_patches(problem)) return;
  const Problem patches = patch_problem(problem);
  Search(patches, target, into, problem, Preparation::gathering).run();
}

/// Why there are none; empty if there are.
std::string add_candidates(const Problem& problem, const Target& target, CandidateList& into) {
  if (std::string why = obstacle_of_wgmma(problem, target); !why.empty()) return why;
  std::string why = Search(problem, target, into).run();
  add_transposed_candidates(problem, target, into);
  add_patch_candidates(problem, target, into);
  return why;
}

}  // namespace

std::string wgmma::enumerate(const Problem& problem, const Target& target, CandidateList& into) {
  std::string why = add_candidates(problem, target, into);
  if (const std::int64_t count = groups_to_join(problem); count > 1)
    add_candidates(join_groups(problem, count), target, into);
  return into.empty() ? why : std::string();
}

}  // namespace jitconv::codegen
