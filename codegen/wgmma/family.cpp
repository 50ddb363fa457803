// The wgmma family: tensor cores of sm_90a for dense convolutions. Its weights are packed and its input transposed by
// passes before it, and splits of a reduction are added by one behind it.
#include "codegen/wgmma/family.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "codegen/find_range/pass.h"
#include "codegen/gather_patches/pass.h"
#include "codegen/pack_weights/pass.h"
#include "codegen/reduce/pass.h"
#include "codegen/split_operands.h"
#include "codegen/transpose_input/pass.h"
#include "codegen/wgmma/geometry.h"
#include "codegen/wgmma/store.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

/// Where the kernel looks for packed weights.
PackWeightsTiling packed_layout(const WgmmaGeometry& geometry) {
  const WgmmaTiling& tiling = geometry.tiling();
  PackWeightsTiling layout;
  layout.tile_channels = tiling.tile.channels / tiling.tile.folded_columns;
  layout.slices = tiling.pipeline.slices;
  layout.filter_rows = tiling.pipeline.filter_rows;
  layout.units = geometry.units();
  layout.row_pitch = geometry.pitch();
  layout.folded_columns = tiling.tile.folded_columns;
  layout.parts = tiling.operand_parts();
  layout.f16_pairs = tiling.f16_pairs;
  // Phases of columns that a tile has together need not meet the same taps.
  layout.leaves_zero_taps = geometry.copies_met_taps() && !geometry.problem().phases.columns_innermost;
  return layout;
}

void add_passes(ConvPlan& plan) {
  const auto tiling = std::get<WgmmaTiling>(plan.convolution().tiling);
  const Problem asked = plan.convolution().problem;
  // Weights of patches are packed as those of the 1x1 convolution.
  if (tiling.gathers_patches()) plan.convolution().problem = patch_problem(asked);
  const Problem convolved = tiling.transposes_input() ? transposed_problem(asked)
                            : tiling.splits_input()   ? split_problem(asked)
                                                      : plan.convolution().problem;
  const WgmmaGeometry geometry(convolved, tiling);
  // Regions in the order of their use by callers who pack weights themselves: theirs comes first.
  if (tiling.packs_weights()) add_weight_packing(plan, packed_layout(geometry));
  if (tiling.f16_pairs) add_weight_range(plan);
  if (tiling.split_k > 1)
    add_reduction(plan, tiling.split_k, WgmmaStore(geometry).partial_sum_stride(), Relu::instruction);
  if (tiling.transposes_input()) add_input_transposition(plan);
  if (tiling.f16_pairs) add_input_range(plan);
  if (tiling.splits_input()) add_input_splitting(plan);
  if (tiling.gathers_patches()) add_patch_gathering(plan, asked);
}

std::string loading(const WgmmaGeometry& geometry) {
  const WgmmaTiling::Producer& producer = geometry.tiling().producer;
  switch (producer.pixels) {
    case WgmmaTiling::Pixels::loaded:
      return fmt::format("{} team(s) of {} warp(s), {} {} of a lane in flight", 4 / producer.team_warps,
                         producer.team_warps, producer.load_batch,
                         geometry.loads_vectors()                                          ? "vector(s)"
                         : geometry.loads_pairs() || geometry.pixels().loads_phase_pairs() ? "pair(s) of pixels"
                                                                                           : "pixel(s)");
    case WgmmaTiling::Pixels::converted:
      return fmt::format("by TMA, {} step(s) ahead of each of 4 warps", producer.copies_ahead);
    case WgmmaTiling::Pixels::aligned:
      return fmt::format("by TMA, {} step(s) ahead of each of 4 warps, which align planes: an MN-major operand",
                         producer.copies_ahead);
    case WgmmaTiling::Pixels::planes:
      return "as boxes of planes, an MN-major operand, by TMA";
    case WgmmaTiling::Pixels::im2col:
      return fmt::format("{}as operand rows, by TMA in im2col mode",
                         geometry.tiling().gathers_patches()    ? "patches, gathered before, "
                         : geometry.tiling().transposes_input() ? "transposed before, "
                         : geometry.tiling().splits_input()     ? "split before, "
                                                                : "");
  }
  return {};
}

std::string_view storing(const WgmmaGeometry& geometry) {
  if (geometry.tiling().stores_boxes()) return "boxes of outputs, by TMA";
  const bool nhwc = geometry.problem().output.layout() == Layout::nhwc;
  if (geometry.tiling().stores_pixels)
    return nhwc ? "vectors of channels, pixels of a phase a stride apart" : "rows of pixels, of all phases of columns";
  if (nhwc) return "vectors of channels";
  const WgmmaStore store(geometry);
  if (store.stores_planes()) return "planes of whole images, of eight channels at a time, by TMA";
  if (geometry.tiling().tile.images > 0) return "planes of whole images";
  return store.stores_bulk() ? "runs, by TMA" : "runs, as vectors";
}

std::string_view weights(const WgmmaTiling& tiling) {
  switch (tiling.weights) {
    case WgmmaTiling::Weights::packed:
      return "loaded with each step";
    case WgmmaTiling::Weights::resident:
      return "all in shared memory";
    case WgmmaTiling::Weights::unpacked:
      return "loaded with each step as they lie in w";
    case WgmmaTiling::Weights::transposed:
      return "loaded with each step as they lie in w, an MN-major operand";
  }
  return {};
}

std::string_view split_products(const Tiling& tiling) {
  const auto& wgmma = std::get<WgmmaTiling>(tiling);
  return !wgmma.splits_operands() ? "" : wgmma.f16_pairs ? "f16x3" : "tf32x3";
}

bool reads_asked_weight(const Tiling& tiling) { return std::get<WgmmaTiling>(tiling).takes_weights_transposed(); }

std::string describe(const KernelPlan& kernel) {
  const WgmmaGeometry geometry(kernel.problem, std::get<WgmmaTiling>(kernel.tiling));
  const WgmmaTiling& t = geometry.tiling();
  std::string text = fmt::format(
      "tile of a block: {} channels, {} run(s) of {} positions{}\n"
      "pipeline: {} stages of {} slice(s) of 16 bytes of channels and {}\n",
      t.tile.channels, t.runs(), t.tile.columns,
      t.stores_boxes() ? "" : fmt::format(", each for {} outputs", t.tile.window), t.pipeline.stages, t.pipeline.slices,
      t.pipeline.filter_rows == 1 ? "one filter row" : "all filter rows");
  if (t.folds_columns())
    text += fmt::format("rows of a tile: {} groups of {} channels, for {} neighbouring filter columns\n",
                        t.tile.folded_columns, t.tile.channels / t.tile.folded_columns, geometry.fold().groups());
  if (t.joins_groups > 1)
    text += fmt::format(
        "groups: {0} share multiplications, weights between channels of different ones are zeros; an infinity or a NaN "
        "reaches outputs of all {0}\n",
        t.joins_groups);
  text += fmt::format("loading: {}\nstoring: {}\n", loading(geometry), storing(geometry));
  if (t.schedule == WgmmaTiling::Schedule::pingpong)
    text += "schedule: pingpong, consumers take tiles in turn, and one stores while the other multiplies\n";
  if (t.schedule == WgmmaTiling::Schedule::sliced_k)
    text += "schedule: sliced-K, consumers take the steps of a tile in turn, and add their sums\n";
  if (t.tile.images > 0) text += fmt::format("images of a run: {}\n", t.tile.images);
  text += fmt::format("weights: {}\n", weights(t));
  if (geometry.skips_zero_taps())
    text += fmt::format("taps: those that a tile's phase meets, {} of {}\n", geometry.met_taps(),
                        geometry.tile_phases() * geometry.taps());
  if (t.splits_operands())
    text += split_operands_text(t.f16_pairs ? SplitInto::f16 : SplitInto::tf32, t.promotion_interval);
  if (t.split_k > 1) text += fmt::format("split-K: over {} blocks, partial sums added by another kernel\n", t.split_k);
  return text;
}

std::vector<int> body(const KernelPlan& kernel) {
  const WgmmaGeometry geometry(kernel.problem, std::get<WgmmaTiling>(kernel.tiling));
  const WgmmaTiling& t = geometry.tiling();
  const WgmmaStore store(geometry);
  return {t.tile.columns,
          t.pipeline.slices,
          t.pipeline.filter_rows,
          t.producer.load_batch,
          static_cast<int>(t.producer.pixels),
          t.producer.copies_ahead,
          static_cast<int>(t.weights),
          t.gathers_patches()    ? 2
          : t.transposes_input() ? 1
          : t.splits_input()     ? 3
                                 : 0,
          std::min(t.tile.images, 2),
          t.tile.folded_columns,
          t.promotion_interval,
          t.f16_pairs ? 1 : 0,
          geometry.skips_zero_taps() ? static_cast<int>(geometry.tile_phases()) : 0,
          t.stores_pixels         ? 3
          : store.stores_bulk()   ? 1
          : store.stores_planes() ? 2
                                  : 0};
}

std::int64_t multiply_adds(const KernelPlan& kernel) {
  const WgmmaGeometry geometry(kernel.problem, std::get<WgmmaTiling>(kernel.tiling));
  const WgmmaTiling& t = geometry.tiling();
  const std::int64_t channels = std::int64_t{t.tile.channels} * t.runs();  // of a run, and again of the other
  return geometry.tiles() / t.split_k * channels * t.tile.columns * geometry.steps() * geometry.multiplied_units() *
         geometry.slice_channels();
}

/// Tiles are runs of a whole plane of outputs, so rows keep their length and are taken away in numbers that keep the
/// phase of planes within sectors, or of runs that are stored as boxes, and end with their row, within tiles.
OutputTiles output_tiles(const KernelPlan& kernel) {
  const WgmmaGeometry geometry(kernel.problem, std::get<WgmmaTiling>(kernel.tiling));
  const WgmmaTiling& tiling = geometry.tiling();
  const Problem& problem = kernel.problem;
  const std::int64_t row = geometry.run_row(), runs = tiling.runs();
  OutputTiles result;
  result.rows = result.columns = 0;
  result.tiles = geometry.tiles();
  if (tiling.tile.images > 0) {
    result.images = runs * tiling.tile.images;
    return result;
  }
  const std::int64_t sector = geometry.sector_elements();
  std::int64_t step = sector / std::gcd(sector, problem.columns.output);
  if (tiling.copies_pixels()) {  // which need planes of x to be whole vectors, or to start where they did in one
    const std::int64_t vector = 16 / problem.input.element_bytes();
    step = std::lcm(step, vector / std::gcd(vector, problem.columns.input * problem.rows.stride));
  }
  if (tiling.stores_boxes() && row % tiling.tile.columns == 0) step = runs / std::gcd(runs, row / tiling.tile.columns);
  const std::int64_t run = tiling.tile.window + geometry.alignment_outputs();
  result.rows = round_up(ceil_div(2 * run, row), step);
  result.row_outputs = row, result.fewest_outputs = 2 * runs * run;
  return result;
}

/// How long a plane is decides on these, and, of transposed input, which rows are left.
bool keeps_kernel(const KernelPlan& full, const KernelPlan& fewer_rows) {
  constexpr std::int64_t kVector = PixelGrid::kRowBytes / 2;  // of 16-bit elements, where planes start
  const auto decisions = [](const KernelPlan& kernel) {
    const WgmmaGeometry geometry(kernel.problem, std::get<WgmmaTiling>(kernel.tiling));
    return std::tuple(WgmmaStore(geometry).stores_bulk(), geometry.row_ends(), geometry.pixels().copies_boxes(),
                      kernel.problem.rows.stride, geometry.tiling().copies_pixels() ? geometry.pixels().raw_pitch() : 0,
                      geometry.pixels().copies_periods() ? kernel.problem.input_plane() % kVector : 0);
  };
  return decisions(full) == decisions(fewer_rows);
}

}  // namespace

FamilyFunctions wgmma_family() {
  return {
      .name = "wgmma",
      .uses_tensor_cores = true,
      .prices_packing = true,
      .reads_asked_weight = reads_asked_weight,
      .stores_pixels = [](const Tiling& tiling) { return std::get<WgmmaTiling>(tiling).stores_pixels; },
      .joins_groups = [](const Tiling& tiling) { return std::int64_t{std::get<WgmmaTiling>(tiling).joins_groups}; },
      .awaits_weights = [](const Tiling&) { return true; },
      .split_products = split_products,
      .enumerate = wgmma::enumerate,
      .add_passes = add_passes,
      .emit = wgmma::emit,
      .describe = describe,
      .body = body,
      .multiply_adds = multiply_adds,
      .output_tiles = output_tiles,
      .keeps_kernel = keeps_kernel,
  };
}

}  // namespace jitconv::codegen
