// See pack_weights/tiling.h.
#include "codegen/pack_weights/tiling.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

#include "codegen/arithmetic.h"
#include "codegen/f16_pairs.h"
#include "codegen/phases.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

/// Taps of the filter in w, of which the window of a sub-pixel convolution has those that a phase meets.
std::int64_t filter_taps(const Problem& problem) {
  return problem.is_sub_pixel() ? problem.phases.rows.taps * problem.phases.columns.taps : problem.taps();
}

}  // namespace

std::vector<int> tap_order(const Problem& problem, int filter_rows, std::int64_t row_pitch, int folded_columns) {
  const Axis& columns = problem.columns;
  const ColumnFold fold{columns.taps, folded_columns};
  std::vector<int> order(static_cast<std::size_t>(filter_rows * fold.taps()));
  std::iota(order.begin(), order.end(), 0);
  const auto place = [&](int tap) {
    const std::int64_t r = tap / fold.taps(), column = fold.first_column(tap % fold.taps()) * columns.dilation;
    return std::pair{column % columns.stride, r * problem.rows.dilation * row_pitch + column / columns.stride};
  };
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return place(a) < place(b); });
  return order;
}

std::int64_t PackWeightsTiling::steps(const Problem& problem) const {
  return ceil_div(problem.c, std::int64_t{slices} * slice_channels(problem)) * (problem.rows.taps / filter_rows);
}

std::int64_t PackWeightsTiling::tiles_k(const Problem& problem) const { return ceil_div(problem.k, tile_channels); }

bool PackWeightsTiling::has_empty_unit(const Problem& problem) const {
  return filter_rows * fold(problem).taps() * slices < units;
}

std::int64_t PackWeightsTiling::packed_slices(const Problem& problem) const {
  return ceil_div(problem.c, std::int64_t{slices} * slice_channels(problem)) * slices / item_rows();
}

std::int64_t PackWeightsTiling::packed_bytes(const Problem& problem) const {
  return round_up(problem.groups * tiles_k(problem) * steps(problem) * parts * units * tile_channels * folded_columns *
                      kRowBytes,
                  256) +
         (f16_pairs ? kRangeBytes : 0);
}

std::int64_t PackWeightsTiling::range_row(const Problem& problem) const {
  return (packed_bytes(problem) - kRangeBytes) / kRowBytes;
}

std::int64_t PackWeightsTiling::source_elements(const Problem& problem) {
  const std::int64_t channels = problem.is_sub_pixel() ? problem.k / problem.phases.count() : problem.k;
  return problem.groups * channels * problem.c * filter_taps(problem);
}

std::int64_t PackWeightsTiling::piece_words(const Problem& problem) const {
  if (!reads_gradient(problem)) return block_slices * item_rows() * problem.taps() * (kRowBytes / 4);
  return ceil_div(block_channels * filter_taps(problem) * problem.weight.element_bytes(), 4);
}

std::int64_t PackWeightsTiling::piece_pitch(const Problem& problem) const {
  // An odd number: lanes that read the same place of 32 output channels' pieces have no bank conflicts.
  if (!reads_gradient(problem)) return piece_words(problem) + 1;
  // Whole vectors. Lanes read places of one piece.
  const std::int64_t words = piece_words(problem);
  return round_up(words + (skews_pieces(problem) ? words / 32 * 4 : 0), 4);
}

std::int64_t PackWeightsTiling::pieces(const Problem& problem) const {
  return reads_gradient(problem) ? std::int64_t{block_slices} * item_rows() * slice_channels(problem) : block_channels;
}

int PackWeightsTiling::load_elements(const Problem& problem) const {
  const View& weight = source(problem);
  // Families that pack weights ask for tensors that are aligned to 16 bytes.
  return static_cast<int>(
      std::gcd(std::gcd(weight.stride.c, problem.groups > 1 ? weight.group : 0),
               std::gcd(block_channels * filter_taps(problem), kRowBytes / weight.element_bytes())));
}

bool PackWeightsTiling::skews_pieces(const Problem& problem) { return filter_taps(problem) % 2 == 0; }

std::int64_t PackWeightsTiling::block_rows(const Problem& problem) const {
  return block_channels * (problem.phases.columns_innermost ? problem.phases.columns.count() : 1);
}

std::int64_t PackWeightsTiling::packed_phases(const Problem& problem) const {
  return ceil_div(tiles_k(problem) * tile_channels, problem.k / outer_phases(problem.phases));
}

std::int64_t PackWeightsTiling::slice_rows(const Problem& problem) const {
  return units / slices * (problem.rows.taps / filter_rows);
}

std::int64_t PackWeightsTiling::lanes(const Problem& problem) const {
  const std::int64_t rows =
      has_whole_phases(problem) ? tiles_k(problem) * tile_channels : packed_phases(problem) * block_rows(problem);
  const std::int64_t items = block_slices * slice_rows(problem) * folded_columns;
  const auto rounds = [&](std::int64_t lanes) { return ceil_div(rows, lanes) * ceil_div(items, kThreads / lanes); };
  std::int64_t best = std::min<std::int64_t>(kThreads, std::bit_ceil(static_cast<std::uint64_t>(rows)));
  // Fewer than a warp's would write short pieces.
  for (std::int64_t lanes = best / 2; lanes >= kWarpSize; lanes /= 2)
    if (rounds(lanes) < rounds(best)) best = lanes;
  return best;
}

std::int64_t PackWeightsTiling::shared_bytes(const Problem& problem) const {
  return joins_groups(problem) ? 0 : pieces(problem) * piece_pitch(problem) * 4;
}

std::int64_t PackWeightsTiling::blocks(const Problem& problem) const {
  return problem.groups * blocks_of_group(problem) * ceil_div(packed_slices(problem), block_slices);
}

std::int64_t PackWeightsTiling::blocks_of_group(const Problem& problem) const {
  if (!problem.is_sub_pixel() || joins_groups(problem)) return tiles_k(problem) * tile_channels / block_channels;
  return ceil_div(problem.k / problem.phases.count(), block_channels);
}

void PackWeightsTiling::choose_block(const Problem& problem) {
  // Measured on an H200: many short blocks are better than long pieces, down to about two sectors.
  constexpr std::int64_t kFewestBlocks = 2048, kShortestPiece = 64;
  block_channels = std::min(32, tile_channels);
  block_slices = 1;
  // Of phases with few channels, the rows of several fill the lanes.
  if (problem.is_sub_pixel() && reads_gradient(problem))
    block_channels = static_cast<int>(std::min<std::int64_t>(block_channels, problem.k / problem.phases.count()));
  while (block_channels > 1 && shared_bytes(problem) > kMostBytes)
    block_channels = static_cast<int>(std::bit_floor(static_cast<unsigned>(block_channels - 1)));
  const auto longer_is_better = [&] {
    PackWeightsTiling longer = *this;
    longer.block_slices *= 2;
    const bool long_enough = reads_gradient(problem) || 4 * piece_words(problem) >= kShortestPiece;
    const bool too_few = longer.blocks(problem) < kFewestBlocks && long_enough;
    return longer.shared_bytes(problem) <= kMostBytes && !too_few;
  };
  while (block_slices < packed_slices(problem) && longer_is_better()) block_slices *= 2;
}

std::string PackWeightsTiling::obstacle(const Problem& problem) {
  PackWeightsTiling least;
  least.block_channels = 1;
  if (least.shared_bytes(problem) <= kMostBytes) return {};
  return fmt::format("a filter of {}x{} taps, more than a block packs at a time", problem.rows.taps,
                     problem.columns.taps);
}

}  // namespace jitconv::codegen
