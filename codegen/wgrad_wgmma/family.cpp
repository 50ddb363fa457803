// The wgrad_wgmma family: tensor cores of sm_90a for the gradient of the weights. Splits of the pixels are added by
// reduce/.
#include "codegen/wgrad_wgmma/family.h"

#include "codegen/bias_gradient/pass.h"
#include "codegen/gather_patches/pass.h"
#include "codegen/pack_pixels/pass.h"
#include "codegen/reduce/pass.h"
#include "codegen/split_operands.h"
#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

void add_passes(ConvPlan& plan) {
  auto tiling = std::get<WgradWgmmaTiling>(plan.convolution().tiling);
  if (tiling.gathers_patches) {
    const Problem of_taps = plan.convolution().problem;
    plan.convolution().problem = tiling.asked_of(of_taps);
    add_patch_gathering(plan, of_taps);
    plan.convolution().starts_early = false;  // only what packs is waited for
  }
  const Problem asked = plan.convolution().problem;
  plan.convolution().problem = tiling.problem_of(asked);
  if (tiling.packs()) add_pixel_packing(plan, tiling.packing_of(asked));
  tiling.partial_sums = scratch_tensor(plan.scratch.size());
  plan.convolution().tiling = tiling;
  const GradientSums sums = tiling.sums_of(asked);
  if (tiling.exchanges && asked.epilogue.bias)
    add_bias_gradient(plan, asked, {tiling.partial_sums, sums.stride, tiling.splits});
  add_gradient_reduction(plan, asked, tiling.splits, sums);
}

/// How rows of x come to the multiplications.
std::string rows_of_x(const WgradGeometry& geometry) {
  const WgradWgmmaTiling& t = geometry.tiling();
  if (t.takes_boxes())
    return fmt::format("{} box(es) of {} channels each, multiplied as they lie, {} columns at a time{}",
                       geometry.boxes(), geometry.row_channels(), t.columns(), t.packs_x ? ", packed before" : "");
  if (t.takes_planes())
    return fmt::format("{} part(s) of {} pixels of each channel, multiplied as they lie{}", geometry.pixel_parts(),
                       geometry.part_pixels(), t.packs_x ? ", packed before" : "");
  if (t.gathers())
    return fmt::format("each loaded as {} columns of a product, channels at filter columns", t.columns());
  return fmt::format("each in {} phase(s) and {} shift(s), loaded as {}", geometry.phases(), geometry.shifts().size(),
                     t.orders() ? (t.x_vectors ? "boxes" : "runs") : (t.x_vectors ? "vectors" : "pixels"));
}

std::string describe(const KernelPlan& kernel) {
  const auto& t = std::get<WgradWgmmaTiling>(kernel.tiling);
  const WgradGeometry geometry(kernel.problem, t);
  std::string text =
      t.exchanges ? "operands: exchanged, the kernel's x is dy and its dy is x; taps run backwards\n" : "";
  if (t.gathers_patches) text += "x: patches, gathered before\n";
  if (t.joins_rows) text += "rows: those of all images are one, with columns of zeros between images\n";
  if (t.joins_groups > 1)
    text += fmt::format("groups: {} of those asked for are computed as one, products between them are not read\n",
                        t.joins_groups);
  text += fmt::format(
      "tile of a block: {} output channels, {} input channels, {}x{} taps, which consumers {}\n"
      "pipeline: steps of {} pixels of a row; {} stages of dy, {} rows of x, {}\n"
      "strips of {} rows: {} in all, shared by {} blocks; accumulators added to memory every {} strip(s) of {} rows\n",
      t.block_k(), t.block_c, t.block_r, t.block_s, t.consumers_k == 2 ? "share" : "deal out", t.row_pixels, t.stages,
      t.x_rows, rows_of_x(geometry), t.strip_rows, geometry.strips(), t.splits, t.summed_strips, t.piece_rows);
  if (t.splits_operands) text += split_operands_text(SplitInto::tf32, t.promotion_interval());
  return text;
}

std::vector<int> body(const KernelPlan& kernel) {
  const auto& t = std::get<WgradWgmmaTiling>(kernel.tiling);
  return {t.consumers_k,
          t.block_c,
          t.block_r,
          t.block_s,
          t.row_pixels,
          t.x_vectors ? 1 : 0,
          static_cast<int>(t.producer),
          t.splits_operands ? 1 : 0,
          t.joins_taps ? 1 : 0,
          t.packs_x ? 1 : 0,
          t.packs_dy ? 1 : 0,
          t.joins_rows ? 1 : 0,
          t.exchanges ? 1 : 0,
          t.gathers_patches ? 1 : 0};
}

std::int64_t multiply_adds(const KernelPlan& kernel) {
  const auto& t = std::get<WgradWgmmaTiling>(kernel.tiling);
  const WgradGeometry geometry(kernel.problem, t);
  return geometry.tiles() * geometry.problem().n * geometry.strips_of_row() * geometry.problem().rows.output *
         t.block_k() * t.block_c * t.taps() * t.row_pixels;
}

}  // namespace

FamilyFunctions wgrad_wgmma_family() {
  return {
      .name = "wgrad_wgmma",
      .uses_tensor_cores = true,
      .reads_any_weight = true,
      .split_products = [](const Tiling& tiling) -> std::string_view {
        return std::get<WgradWgmmaTiling>(tiling).splits_operands ? "tf32x3" : "";
      },
      .enumerate = wgrad_wgmma::enumerate,
      .add_passes = add_passes,
      .emit = wgrad_wgmma::emit,
      .describe = describe,
      .body = body,
      .multiply_adds = multiply_adds,
  };
}

}  // namespace jitconv::codegen
