// Candidates of the wgrad family: tiles of dw, and how many blocks share the pixels of one.
#include <algorithm>

#include "codegen/costs/costs.h"
#include "codegen/reduce/tiling.h"
#include "codegen/wgrad/family.h"

namespace jitconv::codegen {
namespace {

struct Shape {
  int block_k, block_columns, thread_k, thread_columns;
};
constexpr Shape kShapes[] = {{128, 128, 8, 8}, {128, 64, 8, 8}, {64, 128, 8, 8}, {64, 64, 8, 4},
                             {128, 32, 8, 4},  {32, 128, 8, 4}, {32, 32, 4, 4},  {16, 128, 4, 4},
                             {128, 16, 4, 4},  {8, 128, 4, 4},  {128, 8, 4, 4},  {4, 128, 4, 4}};
constexpr std::int64_t kMostPartialSumBytes = std::int64_t{1} << 30;
/// Products that a thread adds up one after the other, at most: see docs/accuracy.md.
constexpr std::int64_t kMostSummed = std::int64_t{1} << 17;
/// Fewer pixels of a block than this are not worth its start.
constexpr std::int64_t kFewestPixels = 256;

BlockWork work_of(const WgradTiling& tiling, const Problem& problem, const WgradCosts& costs) {
  const std::int64_t splits = tiling.splits(problem), tiles = tiling.tiles(problem);
  const std::int64_t warps = ceil_div(tiling.threads(), kWarpSize),
                     chunks = ceil_div(tiling.split_pixels, tiling.chunk_pixels);
  BlockWork work;
  work.blocks = splits * tiles;
  work.threads = tiling.threads();
  work.warps = warps;
  work.fma_per_warp = std::int64_t{tiling.thread_k} * tiling.thread_columns * tiling.split_pixels;
  const std::int64_t copied =
      ceil_div(std::int64_t{tiling.chunk_pixels} * (tiling.block_k + tiling.block_columns), tiling.threads());
  const bool pixels_are_contiguous = problem.input.layout() == Layout::nchw;
  // A copy forms an address and a predicate, and where lanes run along channels decodes its pixel, too.
  work.other_per_warp = chunks * (copied * (pixels_are_contiguous ? costs.nchw_copy : costs.nhwc_copy) + costs.chunk) +
                        tiling.split_pixels * (tiling.thread_k + tiling.thread_columns) / 4;
  work.shared_per_warp =
      tiling.split_pixels * (tiling.thread_k + tiling.thread_columns) * costs.value_wavefront_percent / 100 +
      chunks * copied * costs.copy_wavefronts;
  work.latency_cycles =
      costs.latency +
      chunks * (costs.chunk_latency + copied * (tiling.async_copy ? costs.copy_latency : costs.load_latency));
  // Every tile reads its rows and columns; those of one split meet in the L2 cache, mostly.
  work.dram_bytes = static_cast<std::int64_t>(codegen::work(problem).bytes) + 8 * splits * gradient_elements(problem);
  work.registers = tiling.thread_k * tiling.thread_columns + 2 * (tiling.thread_k + tiling.thread_columns) + 48;
  work.shared_bytes = tiling.shared_bytes();
  work.wanted_warps = costs.wanted_warps;
  work.launch_blocks = 8;
  return work;
}

void add_splits(const Shape& shape, const Problem& problem, const Target& target, CandidateList& into) {
  const WgradCosts& costs = into.costs().wgrad;
  WgradTiling tiling;
  tiling.block_k = shape.block_k, tiling.block_columns = shape.block_columns;
  tiling.thread_k = shape.thread_k, tiling.thread_columns = shape.thread_columns;
  tiling.async_copy = problem.input.type == DataType::f32 && target.compute_capability() >= 80;
  const std::int64_t pixels = std::max<std::int64_t>(1, WgradTiling::pixels(problem));
  tiling.split_pixels = round_up(pixels, tiling.chunk_pixels);
  while (tiling.stages > 2 && tiling.shared_bytes() > target.shared_bytes_per_block) --tiling.stages;
  if (tiling.shared_bytes() > target.shared_bytes_per_block) return;
  const std::int64_t resident =
      resident_blocks(work_of(tiling, problem, costs), target) * std::int64_t{target.sm_count};
  const std::int64_t tiles = tiling.tiles(problem);
  std::int64_t last = 0;
  for (const std::int64_t waves : {1, 2, 3, 4, 6}) {
    const std::int64_t wanted = std::clamp<std::int64_t>(
        waves * resident / tiles, 1,
        std::min(ceil_div(pixels, kFewestPixels),
                 std::max<std::int64_t>(1, kMostPartialSumBytes / (4 * gradient_elements(problem)))));
    tiling.split_pixels = round_up(std::min(ceil_div(pixels, wanted), kMostSummed), tiling.chunk_pixels);
    if (tiling.split_pixels == last) continue;
    last = tiling.split_pixels;
    into.add(tiling, work_of(tiling, problem, costs), target);
  }
}

}  // namespace

std::string wgrad::enumerate(const Problem& problem, const Target& target, CandidateList& into) {
  if (problem.reduction != Reduction::pixels) return "the sums run over taps";
  if (WgradTiling::columns(problem) > INT32_MAX / 2) return "a filter of more than 2^30 elements";
  // A tile at most twice as large as there is to compute, unless it is the smallest.
  const auto too_large = [](std::int64_t block, std::int64_t extent, std::int64_t least) {
    return block > least && block >= 2 * extent;
  };
  for (const Shape& shape : kShapes)
    if (!too_large(shape.block_k, problem.k, 4) && !too_large(shape.block_columns, WgradTiling::columns(problem), 8))
      add_splits(shape, problem, target, into);
  if (into.empty()) add_splits({32, 32, 4, 4}, problem, target, into);
  if (into.empty()) return "more than 2^31 - 1 thread blocks";
  return {};
}

}  // namespace jitconv::codegen
