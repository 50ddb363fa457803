// The direct family: fp32 FMA for dense convolutions of every type and layout.
#include "codegen/direct/family.h"

#include "codegen/arithmetic.h"
#include "codegen/costs/costs.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

/// Elements by which tiles reach past the ends of x and w: addresses that are formed, not accessed.
Overhang overhang(const DirectTiling& tiling, const Problem& problem) {
  const std::int64_t pixel =
      problem.input.layout() == Layout::nhwc ? problem.input_channels() : 1;  // elements from column to column
  return {tiling.chunk_c * problem.input_plane() +
              (tiling.input_rows(problem) + problem.rows.pad) * problem.columns.input * pixel +
              (tiling.input_pitch + problem.columns.pad) * pixel,
          tiling.block_k() * problem.c * problem.taps()};
}

bool wide_index(const Problem& problem, const Tiling& tiling) {
  return needs_wide_index(problem, overhang(std::get<DirectTiling>(tiling), problem));
}

std::string describe(const KernelPlan& kernel) {
  const auto& t = std::get<DirectTiling>(kernel.tiling);
  return fmt::format(
      "outputs of a thread: {} channels, {} rows, {} columns\n"
      "lanes of a warp: {} rows, {} columns\n"
      "warps of a block: {} along channels, {} along rows, {} along columns\n"
      "tile of a block: {} channels, {} rows, {} columns\n"
      "pipeline: {} stages of {} input channels, {}\n"
      "body: {}, {} channel(s) per iteration\n",
      t.thread_k, t.thread_p, t.thread_q, t.lanes_p, t.lanes_q, t.warps_k, t.warps_p, t.warps_q, t.block_k(),
      t.block_p(), t.block_q(), t.stages, t.chunk_c, t.async_copy ? "cp.async" : "copies through registers",
      t.unroll_rows ? "all filter rows" : "one filter row", t.unroll_c);
}

std::int64_t multiply_adds(const KernelPlan& kernel) {
  const auto& tiling = std::get<DirectTiling>(kernel.tiling);
  const std::int64_t channels = round_up(kernel.problem.c, tiling.chunk_c);
  return std::int64_t{kernel.launch.blocks} * tiling.block_k() * tiling.block_p() * tiling.block_q() * channels *
         kernel.problem.taps();
}

OutputTiles output_tiles(const KernelPlan& kernel) {
  const auto& tiling = std::get<DirectTiling>(kernel.tiling);
  OutputTiles result;
  result.rows = tiling.block_p(), result.columns = tiling.block_q();
  result.tiles = tiling.blocks(kernel.problem);
  return result;
}

std::int64_t price_beside_tensor_cores(const Problem& problem, const Costs& costs, std::int64_t price) {
  const DirectCosts::BesideTensorCores& beside = costs.direct.beside_tensor_cores;
  const bool half = problem.input.type != DataType::f32;
  return price + price * (half ? beside.half_percent : beside.percent) / 100 + beside.launch;
}

}  // namespace

FamilyFunctions direct_family() {
  return {
      .name = "direct",
      .price_beside_tensor_cores = price_beside_tensor_cores,
      .enumerate = direct::enumerate,
      .needs_wide_index = wide_index,
      .emit = direct::emit,
      .describe = describe,
      .multiply_adds = multiply_adds,
      .output_tiles = output_tiles,
  };
}

}  // namespace jitconv::codegen
