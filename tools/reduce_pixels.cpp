// See reduce_pixels.h.
#include "tools/reduce_pixels.h"

#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "codegen/arithmetic.h"

namespace jitconv::tools {
namespace {

using codegen::ceil_div;
using codegen::WgradDepthwiseTiling;
using codegen::WgradTiling;
using codegen::WgradWgmmaTiling;

/// What a family of weight gradients makes of pixels.
struct Sharing {
  std::int64_t splits, tiles_k, tiles_columns;
};

Sharing sharing_of(const codegen::Problem& problem, const WgradTiling& tiling) {
  return {tiling.splits(problem), problem.groups * tiling.tiles_k(problem), tiling.tiles_columns(problem)};
}

Sharing sharing_of(const codegen::Problem& problem, const WgradDepthwiseTiling& tiling) {
  return {tiling.splits(problem), tiling.tiles_k(problem), tiling.tiles_r(problem)};
}

Sharing sharing_of(const codegen::Problem& problem, const WgradWgmmaTiling& tiling) {
  const codegen::WgradGeometry geometry(problem, tiling);
  const std::int64_t tiles_k = problem.groups * geometry.tiles_k();
  return {tiling.splits, tiles_k, geometry.tiles() / tiles_k};
}

template <typename Tiling>
Sharing sharing_of(const codegen::Problem&, const Tiling&) {
  return {};
}

Sharing sharing_of(const codegen::ConvPlan& plan) {
  const codegen::KernelPlan& kernel = plan.convolution();
  return std::visit([&kernel](const auto& tiling) { return sharing_of(kernel.problem, tiling); }, kernel.tiling);
}

/// What stays in rows and columns, so that the kernel does: columns where copies are made for their number, and rows
/// but for multiples, where planes must be whole vectors of 16 bytes.
struct Kept {
  bool columns = false;
  std::int64_t multiple = 1;
};

Kept kept_by(const WgradWgmmaTiling&) { return {.columns = true, .multiple = 8}; }
Kept kept_by(const WgradDepthwiseTiling&) { return {.columns = true}; }
template <typename Tiling>
Kept kept_by(const Tiling&) {
  return {};
}

/// Lets at most `splits` blocks share the pixels of a tile.
void share(const codegen::Problem& problem, std::int64_t splits, WgradTiling& tiling) {
  tiling.split_pixels = codegen::round_up(ceil_div(WgradTiling::pixels(problem), splits), tiling.chunk_pixels);
}

void share(const codegen::Problem& problem, std::int64_t splits, WgradDepthwiseTiling& tiling) {
  tiling.turns = static_cast<int>(ceil_div(ceil_div(tiling.strips(problem), tiling.slots), splits));
}

void share(const codegen::Problem& problem, std::int64_t splits, WgradWgmmaTiling& tiling) {
  const std::int64_t step = codegen::WgradGeometry(problem, tiling).row_step(), rows = problem.rows.output;
  const auto empty_strips = [&] {
    return rows / step <= (ceil_div(ceil_div(rows, step), tiling.strip_rows) - 1) * tiling.strip_rows;
  };
  if (empty_strips()) tiling.strip_rows = static_cast<int>(ceil_div(rows, step));
  tiling.piece_rows = std::min(tiling.piece_rows, tiling.strip_rows);
  const std::int64_t strips = codegen::WgradGeometry(problem, tiling).strips();
  tiling.splits = static_cast<int>(std::min(splits, strips));
  tiling.summed_strips =
      static_cast<int>(std::min<std::int64_t>(tiling.summed_strips, ceil_div(strips, tiling.splits)));
}

template <typename Tiling>
void share(const codegen::Problem&, std::int64_t, Tiling&) {}

/// What the kernel computes of `asked`: kernels before it may pack its tensors.
codegen::Problem problem_for(const codegen::Problem& asked, const WgradWgmmaTiling& tiling) {
  return tiling.problem_of(asked);
}

template <typename Tiling>
codegen::Problem problem_for(const codegen::Problem& asked, const Tiling&) {
  return asked;
}

codegen::ConvPlan plan_for_pixels(codegen::ConvPlan full, const ConvSpec& spec) {
  const std::int64_t splits = std::min<std::int64_t>(2, sharing_of(full).splits);
  codegen::KernelPlan& kernel = full.convolution();
  const codegen::Problem problem = std::visit(
      [asked = codegen::lower(spec)](const auto& tiling) { return problem_for(asked, tiling); }, kernel.tiling);
  std::visit([&](auto& tiling) { share(problem, splits, tiling); }, kernel.tiling);
  const Sharing shared =
      std::visit([&problem](const auto& tiling) { return sharing_of(problem, tiling); }, kernel.tiling);
  return codegen::plan_like(full, spec,
                            static_cast<std::uint32_t>(shared.splits * shared.tiles_k * shared.tiles_columns));
}

/// Half of the images, or half of the rows or columns of y, less; the larger extent first. False if there is no less.
bool take_pixels(ConvSpec& spec, const Kept& kept) {
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

bool sums_pixels(const codegen::ConvPlan& plan) { return !plan.kernels.empty() && sharing_of(plan).splits > 0; }

void reduce_pixels(Reduction& result, const WorkLimits& limits) {
  const codegen::ConvPlan full = result.plan;
  const std::int64_t as_given = result.multiply_adds;
  ConvSpec spec = full.spec;
  const Kept kept = std::visit([](const auto& tiling) { return kept_by(tiling); }, full.convolution().tiling);
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
  if (sharing_of(full).splits > 1 && sharing_of(result.plan).splits == 1) result.note = "1 of 2 splits of the pixels";
  if (result.multiply_adds <= limits.most) return;
  result.note += fmt::format("{}{} M multiply-adds cannot be made fewer", result.note.empty() ? "" : ", ",
                             result.multiply_adds / 1'000'000);
}

std::array<std::int64_t, 3> gradient_tiles(const codegen::ConvPlan& plan) {
  const Sharing shared = sharing_of(plan);
  return {shared.splits, shared.tiles_k, shared.tiles_columns};
}

}  // namespace jitconv::tools
