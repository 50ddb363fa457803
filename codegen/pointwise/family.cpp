// The pointwise family: wgmma for filters of one tap, TF32, NCHW. Splits of a reduction are added by reduce/.
#include "codegen/pointwise/family.h"

#include <numeric>

#include "codegen/reduce/pass.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

void add_passes(ConvPlan& plan) {
  KernelPlan& convolution = plan.convolution();
  const auto& tiling = std::get<PointwiseTiling>(convolution.tiling);
  if (tiling.splits == 1) return;
  add_reduction(plan, tiling.splits, tiling.partial_sum_stride(convolution.problem), Relu::comparison);
}

std::string describe(const KernelPlan& kernel) {
  const auto& t = std::get<PointwiseTiling>(kernel.tiling);
  std::string text;
  if (t.gathers())
    text += fmt::format("pixels of a tile: those of {} {}\n", t.extent,
                        t.tile == PointwiseTiling::Pixels::images ? "whole image(s)" : "row(s) of an image");
  text += fmt::format(
      "tile of a block: {} pixels, {} channels; of a warpgroup: {} pixels, {} channels\n"
      "pipeline: {} stages of {} channels, {} at a time to registers\n",
      t.block_pixels(), t.block_k(), t.consumer_pixels(), t.columns, t.stages, t.chunk_channels, t.batch_steps * 8);
  text += fmt::format("weights: {}\n",
                      t.streams_weights ? "loaded with each step as they lie in w" : "all in shared memory");
  if (t.splits > 1)
    text += fmt::format("reduction: split over {} blocks, partial sums added by another kernel\n", t.splits);
  return text;
}

std::vector<int> body(const KernelPlan& kernel) {
  const auto& tiling = std::get<PointwiseTiling>(kernel.tiling);
  return {tiling.columns, tiling.lane_pixels, tiling.batch_steps, tiling.streams_weights ? tiling.chunk_channels : 0,
          static_cast<int>(tiling.tile)};
}

std::int64_t multiply_adds(const KernelPlan& kernel) {
  const auto& tiling = std::get<PointwiseTiling>(kernel.tiling);
  const Problem& problem = kernel.problem;
  return tiling.tiles(problem) * tiling.block_pixels() * problem.groups * tiling.tiles_k(problem) * tiling.block_k() *
         problem.c;
}

OutputTiles output_tiles(const KernelPlan& kernel) {
  using Pixels = PointwiseTiling::Pixels;
  const auto& tiling = std::get<PointwiseTiling>(kernel.tiling);
  const Problem& problem = kernel.problem;
  OutputTiles result;
  result.columns = 0;
  if (tiling.tile == Pixels::images) {
    result.images = tiling.extent, result.rows = 0;
  } else if (tiling.tile == Pixels::rows) {
    result.rows = tiling.extent;
  } else {  // rows that keep a plane's remainder modulo a tile's pixels; an image if tiles span images
    const std::int64_t tile = tiling.block_pixels();
    result.rows = tile / std::gcd(tile, problem.columns.output);
    result.row_outputs = problem.columns.output, result.fewest_outputs = 2 * tile;
  }
  result.tiles = tiling.tiles(problem), result.slabs = tiling.slabs(problem);
  return result;
}

}  // namespace

FamilyFunctions pointwise_family() {
  return {
      .name = "pointwise",
      .uses_tensor_cores = true,
      .awaits_weights = [](const Tiling& tiling) { return std::get<PointwiseTiling>(tiling).streams_weights; },
      .enumerate = pointwise::enumerate,
      .add_passes = add_passes,
      .emit = pointwise::emit,
      .describe = describe,
      .body = body,
      .multiply_adds = multiply_adds,
      .output_tiles = output_tiles,
  };
}

}  // namespace jitconv::codegen
