// The depthwise family: fp32 FMA for one input channel per group, NCHW, and its gradient with a stride.
#include "codegen/depthwise/family.h"

#include "codegen/arithmetic.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

/// Elements by which tiles reach past the ends of x: addresses that are formed, not accessed.
Overhang overhang(const DepthwiseTiling& tiling, const Problem& problem) {
  return {tiling.planes * problem.input_plane() +
              (tiling.input_rows(problem) + problem.rows.pad) * problem.columns.input + tiling.input_pitch +
              problem.columns.pad,
          0};
}

bool wide_index(const Problem& problem, const Tiling& tiling) {
  return needs_wide_index(problem, overhang(std::get<DepthwiseTiling>(tiling), problem));
}

std::string describe(const KernelPlan& kernel) {
  const auto& t = std::get<DepthwiseTiling>(kernel.tiling);
  constexpr std::string_view kStores[] = {"vectors from registers", "one flat run through shared memory",
                                          "row by row through shared memory"};
  return fmt::format(
      "outputs of a thread: {} rows, {} columns\n"
      "tile of a block: {} plane(s), {} rows, {} columns\n"
      "copies: {} element(s), {}\n"
      "body: {}, weights in {}\n"
      "store: {}\n",
      t.thread_p, t.thread_q, t.planes, t.tile_p(), t.tile_q(), t.copy_vector,
      t.async_copy ? "cp.async" : "through registers", t.unroll_rows ? "all filter rows" : "one filter row",
      t.weights_in_registers ? "registers" : "shared memory", kStores[static_cast<int>(t.store)]);
}

std::int64_t multiply_adds(const KernelPlan& kernel) {
  const auto& tiling = std::get<DepthwiseTiling>(kernel.tiling);
  return std::int64_t{kernel.launch.blocks} * tiling.planes * tiling.tile_p() * tiling.tile_q() * kernel.problem.k *
         kernel.problem.taps() / kernel.problem.phases_of_stride();
}

OutputTiles output_tiles(const KernelPlan& kernel) {
  const auto& tiling = std::get<DepthwiseTiling>(kernel.tiling);
  OutputTiles result;
  result.planes = tiling.planes;
  result.rows = tiling.tile_p(), result.columns = tiling.tile_q();
  result.tiles = tiling.blocks(kernel.problem);
  return result;
}

}  // namespace

FamilyFunctions depthwise_family() {
  return {
      .name = "depthwise",
      .takes_strided_gradients = true,
      .enumerate = depthwise::enumerate,
      .needs_wide_index = wide_index,
      .emit = depthwise::emit,
      .describe = describe,
      .multiply_adds = multiply_adds,
      .output_tiles = output_tiles,
  };
}

}  // namespace jitconv::codegen
