// The wgmma_rows family: tensor cores of sm_90a for convolutions with few output channels. Its weights are packed by a
// pass before it.
#include "codegen/wgmma_rows/family.h"

#include <algorithm>

#include "codegen/pack_weights/pass.h"
#include "codegen/wgmma_rows/tiling.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

void add_passes(ConvPlan& plan) {
  const auto tiling = std::get<WgmmaRowsTiling>(plan.convolution().tiling);
  const Problem problem = plan.convolution().problem;
  add_weight_packing(plan, WgmmaRowsGeometry(problem, tiling).packed_layout());
}

std::string describe(const KernelPlan& kernel) {
  const WgmmaRowsGeometry geometry(kernel.problem, std::get<WgmmaRowsTiling>(kernel.tiling));
  const WgmmaRowsTiling& t = geometry.tiling();
  std::string text = fmt::format(
      "tile of a block: a strip of {} columns, of which {} are stored, by {} rows of outputs\n"
      "consumers: {} warpgroups, one for each row of outputs that an input row meets\n"
      "pipeline: {} stages of {} slice(s) of 16 bytes of channels of an input row\n",
      t.columns, t.window, t.tile_rows, geometry.consumers(), t.stages, t.slices);
  if (t.folds_columns())
    text += fmt::format("rows of a multiplication: {} groups of {} channels, for {} neighbouring filter columns\n",
                        t.folded_columns, WgmmaRowsTiling::kRows / t.folded_columns, geometry.fold().groups());
  text += fmt::format("loading: {} warps, {} pixel(s) of a lane in flight\n", WgmmaRowsTiling::kProducerWarps,
                      t.load_batch);
  text += fmt::format("weights: {}\n", t.keeps_weights ? "all in shared memory" : "loaded with each step");
  return text;
}

std::vector<int> body(const KernelPlan& kernel) {
  const auto& t = std::get<WgmmaRowsTiling>(kernel.tiling);
  return {t.columns, t.slices, t.load_batch, t.keeps_weights ? 1 : 0, t.folded_columns};
}

std::int64_t multiply_adds(const KernelPlan& kernel) {
  const WgmmaRowsGeometry geometry(kernel.problem, std::get<WgmmaRowsTiling>(kernel.tiling));
  const Problem& problem = kernel.problem;
  return problem.n * problem.rows.output * geometry.strips() * geometry.tiling().columns * WgmmaRowsTiling::kRows *
         problem.rows.taps * geometry.chunks() * geometry.units() * geometry.slice_channels();
}

OutputTiles output_tiles(const KernelPlan& kernel) {
  const WgmmaRowsGeometry geometry(kernel.problem, std::get<WgmmaRowsTiling>(kernel.tiling));
  OutputTiles result;
  result.rows = geometry.tiling().tile_rows * geometry.residues(), result.columns = geometry.tiling().window;
  result.tiles = geometry.tiles();
  return result;
}

/// Shorter tiles take the same paths, if their rows do not come out even among the consumers.
void shorten_tiles(KernelPlan& kernel) {
  auto& tiling = std::get<WgmmaRowsTiling>(kernel.tiling);
  tiling.tile_rows = std::min(tiling.tile_rows, 2 * static_cast<int>(kernel.problem.rows.taps) + 1);
}

}  // namespace

FamilyFunctions wgmma_rows_family() {
  return {
      .name = "wgmma_rows",
      .uses_tensor_cores = true,
      .prices_packing = true,
      .enumerate = wgmma_rows::enumerate,
      .add_passes = add_passes,
      .emit = wgmma_rows::emit,
      .describe = describe,
      .body = body,
      .multiply_adds = multiply_adds,
      .output_tiles = output_tiles,
      .shorten_tiles = shorten_tiles,
  };
}

}  // namespace jitconv::codegen
