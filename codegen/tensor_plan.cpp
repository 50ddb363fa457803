// Candidates of the tensor family: how many positions a multiplication takes, how channels are cut into steps, how the
// loading warps share them, and over how many blocks a reduction is split.
#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "codegen/arithmetic.h"
#include "codegen/heuristics.h"
#include "codegen/tensor_price.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

constexpr int kMostStages = 8, kMostColumns = 256, kFewestBoxes = 2, kMostBoxes = 4;
constexpr std::int64_t kMostTransposedBytes = 256 << 20;  // a workspace that nobody minds
constexpr std::int64_t kMostTapsOfStep = 25;
constexpr int kMostColumnsOfOnlyStep = 112;

/// Which rule keeps the family from computing the spec; empty if none does.
std::string obstacle(const ConvSpec& spec, const Target& target) {
  const std::int64_t image = spec.input.c * spec.input.h * spec.input.w;
  if (target.compute_capability() != 90 || !target.arch_specific)
    return fmt::format("warpgroup multiplications need sm_90a, the target is {}", target.arch());
  if (spec.dtype == DataType::f32 && spec.math != MathMode::tf32)
    return fmt::format("math is {}; fp32 tensors take tensor cores only with tf32", to_string(spec.math));
  if (spec.math == MathMode::ieee) return "math is ieee, which allows fp32 FMA only";
  if (spec.groups > 1 && spec.weight.c < 16)
    return fmt::format("groups of {} channels, at least 16 are needed to fill a multiplication", spec.weight.c);
  if (spec.alignment < 16) return fmt::format("alignment is {}, stores need 16", spec.alignment);
  const TensorShape out = output_shape(spec);
  if (spec.input.n * spec.weight.k > INT32_MAX || out.h * out.w > INT32_MAX - TensorTiling::kBehindPlane)
    return fmt::format("{} planes of {} outputs, both are counted with 32 bits", spec.input.n * spec.weight.k,
                       out.h * out.w);
  if (image > INT32_MAX) return fmt::format("an image of {} elements, offsets inside one have 32 bits", image);
  // Runs end in rows behind the last, whose input rows are computed and not read.
  const std::int64_t rows = out.h + kMostColumns / TensorTiling::pitch(spec) + 2;
  const std::int64_t last_row = rows * spec.stride.h + (spec.weight.r - 1) * spec.dilation.h;
  const std::int64_t row_elements = spec.input.w * (spec.input_layout == Layout::nhwc ? spec.input.c : 1);
  if (last_row > INT32_MAX / row_elements)
    return fmt::format("input row {} of {} elements, offsets inside an image have 32 bits", last_row, row_elements);
  if (TensorTiling::packing_bytes(spec, {.channels = 1}) > TensorTiling::kMostPackingBytes)
    return fmt::format("a filter of {}x{} taps, more than a block packs at a time", spec.weight.r, spec.weight.s);
  return {};
}

class Search {
 public:
  Search(const ConvSpec& spec, const Target& target)
      : spec_(spec), target_(target), out_(output_shape(spec)), price_(spec, target) {}

  /// For candidates that first transpose the pixels of `source`; `spec` is the convolution that remains.
  Search(const ConvSpec& spec, const Target& target, const ConvSpec& source) : Search(spec, target) {
    transposition_ = price_.of_transposition(source);
  }

  /// `why` says what left no candidate, if none is left.
  std::vector<Candidate> run(std::string& why) {
    using Share = TensorTiling::Share;
    for (const auto& [share, block_k] : {std::pair{Share::tile, 128}, std::pair{Share::tile, 64},
                                         std::pair{Share::turns, 64}, std::pair{Share::steps, 64}}) {
      if (block_k == 128 && spec_.weight.k / spec_.groups <= 64) continue;
      // can_share_steps() says so, too, but only of each tiling.
      if (share == Share::steps && spec_.output_layout == Layout::nhwc) continue;
      for (int columns = kMostColumns; columns >= 16; columns -= 8) runs({.share = share, .block_k = block_k}, columns);
    }
    if (candidates_.empty()) why = memory_decides_ || why_.empty() ? no_tile_fits(spec_, target_) : why_;
    return std::move(candidates_);
  }

 private:
  void runs(TensorTiling tiling, int columns) {
    tiling.columns = columns;
    filter_rows(tiling, 1);
    if (spec_.weight.r > 1 && spec_.stride.h == 1 && spec_.stride.w == 1 &&
        spec_.weight.r * spec_.weight.s <= kMostTapsOfStep)
      filter_rows(tiling, static_cast<int>(spec_.weight.r));
  }

  void filter_rows(TensorTiling tiling, int rows) {
    tiling.filter_rows = rows;
    tiling.images = images(tiling);
    boxes(tiling);
    tiling.window = static_cast<int>(tiling.images > 0 ? tiling.images * out_.h * out_.w : window(tiling));
    if (tiling.images == 0 && tiling.window < tiling.columns / 4) {
      why_ = fmt::format("{} positions lie between rows of {} outputs, so a run of {} would hold too few outputs",
                         TensorTiling::gap(spec_), out_.w, kMostColumns);
      return;
    }
    // A narrower run that stores as much does the same with less.
    TensorTiling narrower = tiling;
    narrower.columns -= 8;
    if (tiling.columns > 16 &&
        (tiling.images > 0 ? images(narrower) == tiling.images : window(narrower) == tiling.window))
      return;
    slices(tiling);
  }

  /// Candidates that store runs as boxes, if at most a quarter of a row's positions is wasted.
  void boxes(TensorTiling tiling) {
    tiling.staged_boxes = kFewestBoxes;
    tiling.window = tiling.columns;
    if (tiling.can_store_boxes(spec_) && tiling.store_columns(spec_) > 0 && 4 * out_.w >= 3 * tiling.run_row(spec_))
      slices(tiling);
  }

  /// Whole images whose positions a run holds.
  int images(const TensorTiling& tiling) const {
    const std::int64_t image = tiling.image_positions(spec_), used = (out_.h - 1) * TensorTiling::pitch(spec_) + out_.w;
    if (used > tiling.columns) return 0;
    const std::int64_t most = std::min((tiling.columns - used) / image + 1, ceil_div(spec_.input.n, tiling.runs()));
    const std::int64_t elements = spec_.input.c * spec_.input.h * spec_.input.w;
    return static_cast<int>(std::min(most, INT32_MAX / elements));
  }

  /// The largest window whose outputs, together with the gaps behind rows, fit the run's columns; 0 if none does.
  int window(TensorTiling tiling) const {
    // Where outputs of a channel are not neighbours in y, even numbers keep runs of loads_pairs() at words.
    const int sector = std::max(TensorTiling::sector_elements(spec_), 2);
    const std::int64_t plane = out_.h * out_.w, slack = TensorTiling::slack(spec_);
    for (std::int64_t window = std::min<std::int64_t>(tiling.columns / sector, ceil_div(plane, sector)) * sector;
         window > 0; window -= sector) {
      tiling.window = static_cast<int>(window);
      const std::int64_t outputs = std::min(window + slack, plane);
      if (outputs + tiling.row_ends(spec_) * TensorTiling::gap(spec_) <= tiling.columns) return tiling.window;
    }
    return 0;
  }

  void slices(TensorTiling tiling) {
    const std::int64_t all = ceil_div(spec_.weight.c, TensorTiling::slice_channels(spec_));
    for (const int slices : {1, 2, 4, 8}) {
      if (slices == 1 ? all > 1 : all == 1 || slices > round_up(all, 2)) continue;
      tiling.slices = slices;
      const std::int64_t chunk_bytes = std::min<std::int64_t>(tiling.chunk_channels(spec_), spec_.weight.c) *
                                       spec_.input.h * spec_.input.w * element_bytes(spec_.dtype);
      if (chunk_bytes > INT32_MAX) {
        why_ = fmt::format("a step's channels span {} bytes of x, offsets inside them have 32 bits", chunk_bytes);
        continue;
      }
      if (tiling.load_item_registers(spec_) > tiling.load_registers(spec_) || tiling.packed_rows(spec_) > INT32_MAX)
        continue;
      weights(tiling);
    }
  }

  void weights(TensorTiling tiling) {
    pixels(tiling);
    if (tiling.tiles_k(spec_) * spec_.groups == 1) {
      TensorTiling resident = tiling;
      resident.resident = true;
      pixels(resident);
    }
    tiling.raw_weights = true;
    if (tiling.can_take_raw_weights(spec_) && tiling.registers_fit(spec_)) pixels(tiling);
  }

  void pixels(TensorTiling tiling) {
    if (transposition_) {
      tiling.pixels = TensorTiling::Pixels::transposed;
      if (tiling.can_walk_pixels(spec_)) loads(tiling);
      return;
    }
    // Where the copy engine cannot walk over NHWC tensors, their weights are packed.
    if (!tiling.raw_weights || spec_.input_layout == Layout::nchw) loads(tiling);
    if (tiling.can_walk_pixels(spec_)) {
      TensorTiling walked = tiling;
      walked.pixels = TensorTiling::Pixels::walked;
      loads(walked);
    }
    // If a tile has a single step of one slice, ptxas spills in the warps that convert copies.
    const bool spills = tiling.slices == 1 && tiling.steps(spec_) == 1 && tiling.columns > kMostColumnsOfOnlyStep;
    if (!tiling.copies_fit(spec_) || spills || tiling.stores_boxes()) return;
    tiling.pixels = TensorTiling::Pixels::copied;
    for (const int copies_ahead : {1, 2}) {
      tiling.copies_ahead = copies_ahead;
      loads(tiling);
    }
  }

  void loads(TensorTiling tiling) {
    staged_loads(tiling);
    while (tiling.stores_boxes() && tiling.staged_boxes < kMostBoxes) {
      ++tiling.staged_boxes;
      staged_loads(tiling);
    }
  }

  void staged_loads(TensorTiling tiling) {
    memory_decides_ = true;
    tiling.stages = 0;
    const std::int64_t rest = tiling.shared_bytes(spec_) + 128 + kMostStages * 16;
    const std::int64_t fit = (target_.shared_bytes_per_block - rest) / tiling.stage_bytes(spec_);
    // A warpgroup gives a stage back when it has the next; where each has stages of its own, they are an even number.
    const bool own_stages = tiling.share == TensorTiling::Share::steps;
    if (fit < (tiling.copies_pixels() || own_stages ? 4 : 2)) return;
    tiling.stages = static_cast<int>(std::min<std::int64_t>(fit, kMostStages));
    if (own_stages) tiling.stages -= tiling.stages % 2;
    if (!tiling.loads_pixels()) return splits(tiling);
    const std::int64_t items = tiling.load_items(spec_) * TensorTiling::phases(spec_);
    for (const int team_warps : {1, 2, 4}) {
      if (4 / team_warps > tiling.stages) continue;
      tiling.team_warps = team_warps;
      // As few batches as registers allow, all of about one size.
      const std::int64_t own = ceil_div(items, team_warps);
      const std::int64_t batches = ceil_div(own, tiling.load_registers(spec_) / tiling.load_item_registers(spec_));
      tiling.load_batch = static_cast<int>(ceil_div(own, batches));
      splits(tiling);
    }
  }

  /// Split only what leaves SMs without a tile.
  void splits(TensorTiling tiling) {
    const std::int64_t steps = tiling.steps(spec_);
    tiling.splits = 1;
    const std::int64_t tiles = tiling.tiles(spec_);
    // What is split leaves no second tile to take.
    const int most = tiling.share == TensorTiling::Share::turns || tiling.stores_boxes() ? 1 : 32;
    for (int splits = 1; splits <= most; ++splits) {
      if (splits > 1 && (splits > steps || tiles * splits > 2 * target_.sm_count)) break;
      const std::int64_t steps_of_split = ceil_div(steps, splits);
      if (ceil_div(steps, steps_of_split) != splits) continue;  // some would have nothing to do
      tiling.splits = splits;
      if (tiling.share != TensorTiling::Share::steps || tiling.can_share_steps(spec_)) add(tiling);
    }
  }

  void add(const TensorTiling& tiling) {
    const std::int64_t tiles = tiling.tiles(spec_);
    // Blocks count tiles on past the last.
    if (tiles > INT32_MAX - 2 * target_.sm_count) return;
    BlockWork work;
    work.blocks = std::min<std::int64_t>(tiles, target_.sm_count);
    work.threads = TensorTiling::kThreads;
    work.warps = TensorTiling::kThreads / kWarpSize;
    work.registers = TensorTiling::kLaunchRegisters;
    work.shared_bytes = tiling.shared_bytes(spec_);
    if (work.shared_bytes > target_.shared_bytes_per_block) return;
    work.launch_blocks = 1;
    candidates_.push_back({tiling, work, price_.of(tiling, tiles) + transposition_.value_or(0)});
  }

  const ConvSpec& spec_;
  const Target& target_;
  TensorShape out_;
  TensorPrice price_;
  std::optional<std::int64_t> transposition_;  // its price, if pixels are transposed
  std::vector<Candidate> candidates_;
  std::string why_;              // the last rule that kept a tiling from being cut to shared memory
  bool memory_decides_ = false;  // none did for one of them
};

/// Candidates that transpose the pixels of an NCHW tensor before they convolve.
std::vector<Candidate> transposed_candidates(const ConvSpec& spec, const Target& target) {
  if (spec.input_layout == Layout::nhwc) return {};
  const TensorTiling transposes{.pixels = TensorTiling::Pixels::transposed};
  const ConvSpec transposed = transposes.convolved_spec(spec);
  if (TensorTiling::pixel_slices(transposed) == 1 || transposes.packed_pixel_bytes(transposed) > kMostTransposedBytes)
    return {};
  std::string why;
  return Search(transposed, target, spec).run(why);
}

}  // namespace

std::vector<Candidate> tensor_candidates(const ConvSpec& spec, const Target& target, std::string& why) {
  why = obstacle(spec, target);
  if (!why.empty()) return {};
  std::vector<Candidate> candidates = Search(spec, target).run(why);
  std::ranges::move(transposed_candidates(spec, target), std::back_inserter(candidates));
  return candidates;
}

}  // namespace jitconv::codegen
