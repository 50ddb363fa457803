// The depthwise_nhwc family: fp32 FMA for one input channel per group, NHWC, every type.
#include "codegen/depthwise_nhwc/family.h"

#include <algorithm>
#include <cstdlib>

#include "codegen/arithmetic.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

/// Elements by which tiles reach past the ends of x: addresses that are formed, not accessed.
Overhang overhang(const DepthwiseNhwcTiling& tiling, const Problem& problem) {
  const auto reach = [](const Axis& axis, std::int64_t tile, std::int64_t inputs) {
    return tile * axis.dilation_residues() * axis.stride + inputs * axis.dilation + std::abs(axis.pad);
  };
  const std::int64_t rows = reach(problem.rows, tiling.tile_p(), tiling.input_rows(problem));
  const std::int64_t columns = reach(problem.columns, tiling.tile_q(), tiling.input_columns(problem));
  return {(rows * problem.columns.input + columns) * problem.input_channels() + tiling.block_c(problem),
          tiling.block_k() * problem.taps()};
}

bool wide_index(const Problem& problem, const Tiling& tiling) {
  return needs_wide_index(problem, overhang(std::get<DepthwiseNhwcTiling>(tiling), problem));
}

std::string describe(const KernelPlan& kernel) {
  const auto& t = std::get<DepthwiseNhwcTiling>(kernel.tiling);
  constexpr std::string_view kCopies[] = {"through registers", "cp.async", "one box of TMA"};
  const std::string copy =
      t.copy == DepthwiseNhwcTiling::Copy::box ? "" : fmt::format("{} element(s), ", t.copy_vector);
  return fmt::format(
      "outputs of a thread: {} channel(s), {} rows, {} columns\n"
      "tile of a block: {} channel(s), {} rows, {} columns\n"
      "copies: {}{}, pixels {} elements apart\n"
      "body: {}\n"
      "store: {} channel(s) of a pixel{}\n",
      t.vector, t.thread_p, t.thread_q, t.block_k(), t.tile_p(), t.tile_q(), copy, kCopies[static_cast<int>(t.copy)],
      t.pixel_pitch, t.unroll_rows ? "all filter rows" : "one filter row", t.vector,
      t.store_pairs ? ", rounded in pairs" : "");
}

std::int64_t multiply_adds(const KernelPlan& kernel) {
  const auto& t = std::get<DepthwiseNhwcTiling>(kernel.tiling);
  return std::int64_t{kernel.launch.blocks} * t.multiply_adds(kernel.problem);
}

OutputTiles output_tiles(const KernelPlan& kernel) {
  const auto& tiling = std::get<DepthwiseNhwcTiling>(kernel.tiling);
  const Problem& problem = kernel.problem;
  OutputTiles result;
  // As many tiles as there are residues of the dilation share these rows and columns.
  result.rows = tiling.tile_p() * problem.rows.dilation_residues();
  result.columns = tiling.tile_q() * problem.columns.dilation_residues();
  result.tiles = tiling.blocks(problem);
  return result;
}

}  // namespace

int DepthwiseNhwcTiling::weight_vector(const Problem& problem) const {
  const std::int64_t block = problem.taps() * block_k(), all = problem.taps() * problem.output_channels();
  auto most = std::min<std::int64_t>(16, problem.alignment) / problem.weight.element_bytes();
  while (all % most != 0 || (tiles_c(problem) > 1 && block % most != 0)) most /= 2;
  return static_cast<int>(most);
}

FamilyFunctions depthwise_nhwc_family() {
  return {
      .name = "depthwise_nhwc",
      .reads_any_weight = true,
      .enumerate = depthwise_nhwc::enumerate,
      .needs_wide_index = wide_index,
      .emit = depthwise_nhwc::emit,
      .describe = describe,
      .multiply_adds = multiply_adds,
      .output_tiles = output_tiles,
  };
}

}  // namespace jitconv::codegen
