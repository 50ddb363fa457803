// See reduce_pixels.h.
#include "tools/reduce_pixels.h"

#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "codegen/arithmetic.h"

namespace jitconv::tools {
namespace {

using codegen::ceil_div;
using codegen::KeptPixels;
using codegen::PixelSplits;
using codegen::SumsPixels;

PixelSplits splits_of(const codegen::ConvPlan& plan) {
  const codegen::KernelPlan& kernel = plan.convolution();
  return std::visit(
      [&kernel]<typename Tiling>(const Tiling& tiling) -> PixelSplits {
        if constexpr (SumsPixels<Tiling>)
          return tiling.pixel_splits(kernel.problem);
        else
          return {};
      },
      kernel.tiling);
}

codegen::ConvPlan plan_for_pixels(codegen::ConvPlan full, const ConvSpec& spec) {
  const std::int64_t splits = std::min<std::int64_t>(2, splits_of(full).splits);
  std::int64_t blocks = 0;
  std::visit(
      [&]<typename Tiling>(Tiling& tiling) {
        if constexpr (SumsPixels<Tiling>) {
          codegen::Problem problem = codegen::lower(spec);
          if constexpr (requires { tiling.problem_of(problem); })
            problem = tiling.problem_of(tiling.asked_of(problem));  // kernels before it may gather or pack its tensors
          tiling.share_pixels(problem, splits);
          blocks = tiling.pixel_splits(problem).blocks();
        }
      },
      full.convolution().tiling);
  return codegen::plan_like(full, spec, static_cast<std::uint32_t>(blocks));
}

/// Half of the images, or half of the rows or columns of y, less; the larger extent first. False if there is no less.
bool take_pixels(ConvSpec& spec, const KeptPixels& kept) {
  const TensorShape y = output_shape(spec);
  if (y.n > 2) {
    spec.input.n = ceil_div(y.n, 2);
    return true;
  }
  ConvSpec rows = spec, columns = spec;
  const std::int64_t taken = y.h / 2 / kept.multiple * kept.multiple;
  rows.input.h -= taken * spec.stride.h;
  columns.input.w -= y.w / 2 * spec.stride.w;
  const bool less_rows = taken > 0 && has_outputs(rows),
             less_columns = !kept.columns && y.w > 1 && has_outputs(columns);
  if (!less_rows && !less_columns) return false;
  spec = less_rows && (y.h >= y.w || !less_columns) ? rows : columns;
  return true;
}

}  // namespace

/// The smaller convolution exists.
bool has_outputs(const ConvSpec& spec) {
  const auto fits = [](std::int64_t extent, std::int64_t padding, std::int64_t reach) {
    return extent >= 1 && extent + padding > reach;
  };
  return fits(spec.input.h, spec.padding.top + spec.padding.bottom, (spec.weight.r - 1) * spec.dilation.h) &&
         fits(spec.input.w, spec.padding.left + spec.padding.right, (spec.weight.s - 1) * spec.dilation.w);
}

bool sums_pixels(const codegen::ConvPlan& plan) { return !plan.kernels.empty() && splits_of(plan).splits > 0; }

void reduce_pixels(Reduction& result, const WorkLimits& limits) {
  const codegen::ConvPlan full = result.plan;
  const std::int64_t as_given = result.multiply_adds;
  ConvSpec spec = full.spec;
  const KeptPixels kept = splits_of(full).kept;
  while (result.multiply_adds > limits.most && take_pixels(spec, kept)) {
    result.plan = plan_for_pixels(full, spec);
    result.multiply_adds = executed_multiply_adds(result.plan);
  }
  // Two splits of whole turns of slots may do more than the blocks of few pixels did.
  if (result.multiply_adds > as_given) {
    result.plan = full;
    result.multiply_adds = as_given;
    spec = full.spec;
  }
  result.reduced = spec != full.spec;
  if (splits_of(full).splits > 1 && splits_of(result.plan).splits == 1) result.note = "1 of 2 splits of the pixels";
  if (result.multiply_adds <= limits.most) return;
  result.note += fmt::format("{}{} M multiply-adds cannot be made fewer", result.note.empty() ? "" : ", ",
                             result.multiply_adds / 1'000'000);
}

std::array<std::int64_t, 3> gradient_tiles(const codegen::ConvPlan& plan) {
  const PixelSplits shared = splits_of(plan);
  return {shared.splits, shared.tiles_k, shared.tiles_columns};
}

}  // namespace jitconv::tools
