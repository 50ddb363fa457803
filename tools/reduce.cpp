// Which smaller convolution shows the most of a kernel at the least cost. Outputs are taken away in whole tiles, so
// what is left ends in the same ragged tile, and rows of x and y keep their phase within sectors and copies.
#include "tools/reduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <tuple>
#include <vector>

#include "codegen/arithmetic.h"
#include "codegen/phases.h"
#include "codegen/plan.h"
#include "codegen/transpose_input/tiling.h"
#include "codegen/wgmma/geometry.h"
#include "codegen/wgmma/store.h"
#include "codegen/wgmma_rows/tiling.h"
#include "tools/check/data.h"
#include "tools/reduce_pixels.h"

namespace jitconv::tools {
namespace {

using codegen::ceil_div;

/// One direction in which the output is cut into tiles.
struct Axis {
  std::int64_t extent = 1;  ///< at full size
  std::int64_t tile = 1;
  std::int64_t wanted = 1;  ///< tiles that show all there is to see
  std::int64_t tiles() const { return ceil_div(extent, tile); }
  /// Outputs taken away if `count` tiles are left, and the extent then.
  std::int64_t removed(std::int64_t count) const { return (tiles() - count) * tile; }
  std::int64_t extent_of(std::int64_t count) const { return extent - removed(count); }
};

std::int64_t floor_div(std::int64_t a, std::int64_t b) { return a >= 0 ? a / b : -ceil_div(-a, b); }

/// Wanted are two tiles and, where padding is seen, one more that sees none, between those that do.
Axis spatial_axis(const codegen::Axis& seen, std::int64_t tile) {
  const std::int64_t extent = seen.output, pad = std::max<std::int64_t>(0, seen.pad);
  // A row of dx belongs to one of dy, or to none: dy stays as long as it was meant to be if whole strides are taken.
  Axis axis{extent, std::lcm(tile, seen.upsampling), 1};
  tile = axis.tile;
  const std::int64_t head = std::min(extent, ceil_div(pad, seen.stride));
  const std::int64_t last_input = (seen.input - 1) * seen.upsampling;
  const std::int64_t last_inside = floor_div(last_input + seen.pad - seen.reach(), seen.stride);
  const std::int64_t tail = std::clamp<std::int64_t>(std::max(extent - 1 - last_inside, extent % tile), 0, extent);
  const std::int64_t tail_tiles = tail > 0 ? axis.tiles() - (extent - tail) / tile : 0;
  axis.wanted = std::min(axis.tiles(), std::max<std::int64_t>(2, ceil_div(head, tile) + 1 + tail_tiles));
  return axis;
}

/// Depthwise tiles that hold several planes end raggedly at the last plane; N shrinks so that they still do.
Axis image_axis(const codegen::Problem& problem, std::int64_t planes_per_tile) {
  const std::int64_t channels = problem.input_channels();
  const std::int64_t step = planes_per_tile / std::gcd(planes_per_tile, channels);
  Axis axis{problem.n, step, 1};
  while (axis.wanted < axis.tiles() &&
         (axis.extent_of(axis.wanted) < 2 || axis.extent_of(axis.wanted) * channels <= planes_per_tile))
    ++axis.wanted;
  return axis;
}

/// Tiles of several images: wanted are two, or what there is.
Axis image_tiles(const codegen::Problem& problem, std::int64_t images) {
  Axis axis{problem.n, images, 1};
  axis.wanted = std::min<std::int64_t>(axis.tiles(), 2);
  return axis;
}

struct Axes {
  Axis n, p, q;
};

/// Rows or columns of x that go with so many of what the kernel computes: of y, or of dx, which is x's shape.
std::int64_t of_input(const ConvSpec& spec, std::int64_t outputs, std::int64_t stride) {
  return spec.operation == Operation::forward ? outputs * stride : outputs;
}

/// What a dense family computes for a spec: of a data gradient with a stride, its sub-pixel convolution.
codegen::Problem dense_problem(const ConvSpec& spec, bool stores_pixels = false) {
  const codegen::Problem problem = codegen::lower(spec);
  if (!codegen::needs_phases(problem)) return problem;
  const codegen::Problem sums = codegen::sub_pixel_problem(problem);
  return stores_pixels ? codegen::pixel_storing_problem(problem, sums).value() : sums;
}

/// The problem that the plan's convolution would have for another spec.
codegen::Problem convolved_problem(const codegen::WgmmaTiling& tiling, const ConvSpec& spec) {
  const codegen::Problem problem = codegen::join_groups(dense_problem(spec, tiling.stores_pixels), tiling.joins_groups);
  return tiling.transposes_input ? codegen::transposed_problem(problem) : problem;
}

/// Whether a kernel for fewer rows is the same text, sizes apart. How long a plane is decides on these, and, of
/// transposed input, which rows are left.
bool keeps_kernel(const codegen::WgmmaTiling& tiling, const ConvSpec& full, const ConvSpec& fewer_rows) {
  // Fewer rows of dx than its stride are not of all phases.
  if (tiling.stores_pixels &&
      !codegen::can_store_pixels(dense_problem(fewer_rows), codegen::lower(fewer_rows).epilogue))
    return false;
  const auto decisions = [&](const ConvSpec& asked) {
    const codegen::Problem problem = convolved_problem(tiling, asked);
    const codegen::WgmmaGeometry geometry(problem, tiling);
    return std::tuple(codegen::WgmmaStore(geometry).stores_bulk(), geometry.row_ends(),
                      geometry.pixels().copies_boxes(), problem.rows.stride,
                      tiling.converts_pixels() ? geometry.pixels().raw_pitch() : 0);
  };
  return decisions(fewer_rows) == decisions(full);
}

/// Tiles of wgmma are runs of a whole plane of outputs, so rows keep their length and are taken away in numbers that
/// keep the phase of planes within sectors, or of runs that are stored as boxes, and end with their row, within tiles.
/// Wanted are two tiles and outputs that no padding touches.
Axis wgmma_rows(const codegen::WgmmaTiling& tiling, const ConvSpec& spec) {
  const codegen::Problem problem = convolved_problem(tiling, spec);
  const std::int64_t rows = problem.rows.output;
  if (tiling.tile.images > 0) return {rows, rows, 1};
  const codegen::WgmmaGeometry geometry(problem, tiling);
  const std::int64_t row = geometry.run_row(), runs = tiling.runs();
  const std::int64_t sector = geometry.sector_elements();
  const std::int64_t run = tiling.tile.window + geometry.alignment_outputs();
  std::int64_t step = sector / std::gcd(sector, problem.columns.output);
  if (tiling.converts_pixels()) {  // which need planes of x to be whole vectors
    const std::int64_t vector = 16 / element_bytes(spec.dtype);
    step = std::lcm(step, vector / std::gcd(vector, problem.columns.input * problem.rows.stride));
  }
  if (tiling.stores_boxes() && row % tiling.tile.columns == 0) step = runs / std::gcd(runs, row / tiling.tile.columns);
  Axis axis = spatial_axis(codegen::lower(spec).rows, codegen::round_up(ceil_div(2 * run, row), step));
  if (axis.tile > rows) return {rows, rows, 1};
  const auto wanted_are_enough = [&] {
    ConvSpec fewer_rows = spec;
    fewer_rows.input.h -= of_input(spec, axis.removed(axis.wanted), spec.stride.h);
    return axis.extent_of(axis.wanted) * row >= 2 * runs * run && keeps_kernel(tiling, spec, fewer_rows);
  };
  while (axis.wanted < axis.tiles() && !wanted_are_enough()) ++axis.wanted;
  return axis;
}

/// Tiles of the pointwise family are runs of the pixels of all images, which rows are taken from in numbers that keep a
/// plane's remainder modulo a tile's pixels. Wanted are two tiles, or an image if tiles span images. Other tiles are
/// rows of an image, or whole images.
Axis pointwise_rows(const codegen::PointwiseTiling& tiling, const ConvSpec& spec) {
  using Pixels = codegen::PointwiseTiling::Pixels;
  const codegen::Axis& rows = codegen::lower(spec).rows;
  if (tiling.tile == Pixels::images) return {rows.output, rows.output, 1};
  if (tiling.tile == Pixels::rows) return spatial_axis(rows, tiling.extent);
  const std::int64_t tile = tiling.block_pixels();
  Axis axis{spec.input.h, tile / std::gcd(tile, spec.input.w), 1};
  if (axis.tile > axis.extent) return {axis.extent, axis.extent, 1};
  while (axis.wanted < axis.tiles() && axis.extent_of(axis.wanted) * spec.input.w < 2 * tile) ++axis.wanted;
  return axis;
}

Axes axes_of(const codegen::ConvPlan& plan) {
  const ConvSpec& spec = plan.spec;
  const codegen::Problem problem = codegen::lower(spec);
  std::int64_t tile_p = 1, tile_q = 1, planes = 1;
  if (const auto* direct = plan.tiling<codegen::DirectTiling>()) {
    tile_p = direct->block_p(), tile_q = direct->block_q();
  } else if (const auto* depthwise = plan.tiling<codegen::DepthwiseTiling>()) {
    tile_p = depthwise->tile_p(), tile_q = depthwise->tile_q(), planes = depthwise->planes;
  } else if (const auto* whole = plan.tiling<codegen::DepthwisePlanesTiling>()) {
    tile_p = problem.rows.output, tile_q = problem.columns.output, planes = whole->planes;
  } else if (const auto* nhwc = plan.tiling<codegen::DepthwiseNhwcTiling>()) {
    // As many tiles as there are residues of the dilation share these rows and columns.
    tile_p = nhwc->tile_p() * problem.rows.dilation_residues();
    tile_q = nhwc->tile_q() * problem.columns.dilation_residues();
  }
  if (const auto* strips = plan.tiling<codegen::WgmmaRowsTiling>()) {
    const codegen::Problem convolved = dense_problem(spec);
    tile_p = strips->tile_rows * codegen::WgmmaRowsGeometry(convolved, *strips).residues(), tile_q = strips->window;
  }
  Axes axes{image_axis(problem, planes), spatial_axis(problem.rows, tile_p), spatial_axis(problem.columns, tile_q)};
  const std::int64_t columns = problem.columns.output;
  if (const auto* wgmma = plan.tiling<codegen::WgmmaTiling>()) {
    axes.p = wgmma_rows(*wgmma, spec);
    axes.q = {columns, columns, 1};
    // Runs of whole images end raggedly at the last image.
    if (wgmma->tile.images > 0) axes.n = image_tiles(problem, std::int64_t{wgmma->runs()} * wgmma->tile.images);
  }
  if (const auto* pointwise = plan.tiling<codegen::PointwiseTiling>()) {
    axes.p = pointwise_rows(*pointwise, spec);
    axes.q = {columns, columns, 1};
    if (pointwise->tile == codegen::PointwiseTiling::Pixels::images) axes.n = image_tiles(problem, pointwise->extent);
  }
  if (const auto* fallback = plan.tiling<codegen::FallbackTiling>()) {
    // Blocks run over the pixels of all images as one line: lengthen the rows until there are two.
    constexpr std::int64_t kThreads = 256;
    const std::int64_t rows = axes.n.extent_of(axes.n.wanted) * axes.p.wanted;
    const std::int64_t wanted = ceil_div(kThreads * fallback->thread_pixels / rows + 1, axes.q.tile);
    axes.q.wanted = std::clamp(wanted, axes.q.wanted, axes.q.tiles());
  }
  return axes;
}

struct Counts {
  std::int64_t n, p, q;
};

ConvSpec spec_with(const ConvSpec& full, const Axes& axes, const Counts& counts) {
  ConvSpec spec = full;
  spec.input.n = axes.n.extent_of(counts.n);
  spec.input.h -= of_input(full, axes.p.removed(counts.p), full.stride.h);
  spec.input.w -= of_input(full, axes.q.removed(counts.q), full.stride.w);
  return spec;
}

/// Blocks of a launch that computes `spec` with the tiling of `full`.
std::int64_t blocks_of(const codegen::ConvPlan& full, const ConvSpec& spec) {
  const bool as_asked = codegen::computes_as_asked(full.family(), codegen::lower(spec));
  const codegen::Problem problem = as_asked ? codegen::lower(spec) : dense_problem(spec);
  const std::int64_t blocks = full.convolution().launch.blocks;
  if (const auto* wgmma = full.tiling<codegen::WgmmaTiling>()) {
    // Blocks that walk over tiles still walk over two or three.
    const auto tiles_of = [wgmma](const ConvSpec& one) {
      const codegen::Problem convolved = convolved_problem(*wgmma, one);
      return codegen::WgmmaGeometry(convolved, *wgmma).tiles();
    };
    return tiles_of(full.spec) > blocks ? ceil_div(tiles_of(spec), 3) : tiles_of(spec);
  }
  if (const auto* strips = full.tiling<codegen::WgmmaRowsTiling>())
    return ceil_div(codegen::WgmmaRowsGeometry(problem, *strips).tiles(), 3);
  if (const auto* pointwise = full.tiling<codegen::PointwiseTiling>()) {
    const std::int64_t tiles = pointwise->tiles(problem), slabs = pointwise->slabs(problem);
    const bool walks = pointwise->tiles(full.convolution().problem) * slabs > blocks;
    return slabs * (walks ? ceil_div(tiles, 3) : tiles);
  }
  if (const auto* direct = full.tiling<codegen::DirectTiling>()) {
    return problem.n * problem.groups * ceil_div(problem.k, direct->block_k()) *
           ceil_div(problem.rows.output, direct->block_p()) * ceil_div(problem.columns.output, direct->block_q());
  }
  if (const auto* depthwise = full.tiling<codegen::DepthwiseTiling>()) {
    return ceil_div(problem.n * problem.input_channels(), depthwise->planes) *
           ceil_div(problem.rows.output, depthwise->tile_p()) * ceil_div(problem.columns.output, depthwise->tile_q());
  }
  if (const auto* depthwise = full.tiling<codegen::DepthwiseNhwcTiling>()) return depthwise->blocks(problem);
  if (const auto* depthwise = full.tiling<codegen::DepthwisePlanesTiling>()) return depthwise->blocks(problem);
  std::string why;
  return codegen::candidates_of(full.family(), problem, full.target, why).front().launch.blocks;
}

/// Tiles of the wgmma_rows family are as long as lets SMs share the work. Shorter ones take the same paths, if their
/// rows do not come out even among the consumers.
void shorten_tiles(codegen::ConvPlan& plan) {
  if (plan.kernels.empty()) return;
  auto* strips = std::get_if<codegen::WgmmaRowsTiling>(&plan.convolution().tiling);
  if (strips == nullptr) return;
  const auto filter_rows = static_cast<int>(plan.convolution().problem.rows.taps);
  strips->tile_rows = std::min(strips->tile_rows, 2 * filter_rows + 1);
}

/// The plan of `full` for a spec of which tiles are left. The planner is not asked: it might prefer another tiling.
codegen::ConvPlan plan_for(const codegen::ConvPlan& full, const ConvSpec& spec) {
  return codegen::plan_like(full, spec, static_cast<std::uint32_t>(blocks_of(full, spec)));
}

struct Choice {
  codegen::ConvPlan plan;
  Counts counts{};
  std::int64_t multiply_adds = 0;
  int directions = 0;  ///< in which there are several tiles, or were no more to begin with
  bool complete = false;
};

/// Better first: within the limit; then the more to see; then the less to do. Beyond the limit only the work counts.
bool better(const Choice& a, const Choice& b, std::int64_t most) {
  const auto rank = [most](const Choice& one) {
    const bool fits = one.multiply_adds <= most;
    return std::tuple(!fits, fits ? -one.directions : 0, fits ? !one.complete : false, one.multiply_adds);
  };
  return rank(a) < rank(b);
}

/// Few, and always all that are wanted. A single tile must be filled by more than half: no plan has emptier ones.
std::vector<std::int64_t> counts_of(const Axis& axis) {
  std::vector<std::int64_t> counts;
  for (const std::int64_t count : {1, 2, 3}) {
    const bool filled = count > 1 || 2 * axis.extent_of(1) > axis.tile;
    if (count < axis.wanted && filled) counts.push_back(count);
  }
  counts.push_back(axis.wanted);
  return counts;
}

Choice best_choice(const codegen::ConvPlan& full, const Axes& axes, std::int64_t most) {
  std::optional<Choice> best;
  const auto* wgmma = full.tiling<codegen::WgmmaTiling>();
  const auto several = [](const Axis& axis, std::int64_t count) { return count > 1 || axis.tiles() == 1 ? 1 : 0; };
  for (const std::int64_t n : counts_of(axes.n)) {
    for (const std::int64_t p : counts_of(axes.p)) {
      for (const std::int64_t q : counts_of(axes.q)) {
        const ConvSpec spec = spec_with(full.spec, axes, {n, p, q});
        if (!has_outputs(spec)) continue;  // they are of padding alone
        if (wgmma != nullptr && !keeps_kernel(*wgmma, full.spec, spec)) continue;
        Choice choice{plan_for(full, spec), {n, p, q}};
        choice.multiply_adds = executed_multiply_adds(choice.plan);
        choice.directions = several(axes.n, n) + several(axes.p, p) + several(axes.q, q);
        choice.complete = n == axes.n.wanted && p == axes.p.wanted && q == axes.q.wanted;
        if (!best || better(choice, *best, most)) best = std::move(choice);
      }
    }
  }
  // Padding may make up every output of the wanted tiles.
  const Counts all{axes.n.tiles(), axes.p.tiles(), axes.q.tiles()};
  return best ? *std::move(best) : Choice{full, all, executed_multiply_adds(full), 3, true};
}

/// Says in which directions the smaller convolution has less than there is to see.
std::string missing(const Axes& axes, const Counts& counts, std::int64_t work, std::int64_t most) {
  std::string text;
  for (const auto& [name, axis, count] :
       {std::tuple("N", axes.n, counts.n), std::tuple("P", axes.p, counts.p), std::tuple("Q", axes.q, counts.q)}) {
    if (count >= axis.wanted) continue;
    text += fmt::format("{}{} of {} tiles along {}", text.empty() ? "" : ", ", count, axis.wanted, name);
  }
  if (work > most)
    text += fmt::format("{}{} M multiply-adds cannot be made fewer", text.empty() ? "" : ", ", work / 1'000'000);
  return text;
}

std::array<std::int64_t, 3> tiles_of(const codegen::ConvPlan& plan) {
  if (sums_pixels(plan)) return gradient_tiles(plan);
  const Axes axes = axes_of(plan);
  std::int64_t n = plan.spec.input.n;
  if (const auto* depthwise = plan.tiling<codegen::DepthwiseTiling>())
    n = ceil_div(n * plan.convolution().problem.input_channels(), depthwise->planes);
  if (const auto* whole = plan.tiling<codegen::DepthwisePlanesTiling>()) n = whole->blocks(plan.convolution().problem);
  return {n, axes.p.tiles(), axes.q.tiles()};
}

}  // namespace

std::int64_t multiply_adds(const ConvSpec& spec) {
  const TensorShape y = output_shape(spec);
  // Each product of the definition is one of all three operations, but for what padding takes away.
  if (spec.operation != Operation::data_gradient || spec.stride != Size2(1))
    return check::element_count(y) * spec.weight.c * spec.weight.r * spec.weight.s;
  return check::element_count(spec.input) * check::reduction_length(spec);
}

std::int64_t executed_multiply_adds(const codegen::ConvPlan& plan) {
  return plan.kernels.empty() ? 0 : codegen::functions_of(plan.family()).multiply_adds(plan.convolution());
}

Reduction reduce(const ConvSpec& spec, const Target& target, const WorkLimits& limits) {
  Reduction result;
  result.plan = codegen::make_plan(spec, target);
  result.multiply_adds = executed_multiply_adds(result.plan);
  if (result.multiply_adds > limits.as_given && sums_pixels(result.plan)) {
    reduce_pixels(result, limits);
  } else if (result.multiply_adds > limits.as_given) {
    shorten_tiles(result.plan);
    const Axes axes = axes_of(result.plan);
    Choice choice = best_choice(result.plan, axes, limits.most);
    result.reduced = choice.plan.spec != result.plan.spec;
    result.plan = std::move(choice.plan);
    result.multiply_adds = choice.multiply_adds;
    result.note = missing(axes, choice.counts, choice.multiply_adds, limits.most);
  }
  if (result.plan.family() != codegen::Family::none) result.tiles = tiles_of(result.plan);
  return result;
}

}  // namespace jitconv::tools
