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

/// All of it is one tile.
Axis whole(std::int64_t extent) { return {extent, extent, 1}; }

struct Axes {
  Axis n, p, q;
};

/// Rows or columns of x that go with so many of what the kernel computes: of y, or of dx, which is x's shape.
std::int64_t of_input(const ConvSpec& spec, std::int64_t outputs, std::int64_t stride) {
  return spec.operation == Operation::forward ? outputs * stride : outputs;
}

/// Tiles of a kernel that convolves. A plan's other kernels have none.
codegen::OutputTiles output_tiles(const codegen::KernelPlan& kernel) {
  return codegen::functions_of(kernel.family()).output_tiles(kernel);
}

/// The plan of `full` for a spec of which tiles are left. The planner is not asked: it might prefer another tiling.
/// Blocks that walk over tiles still walk over two or three. Nothing where the kernel would be another one.
std::optional<codegen::ConvPlan> plan_for(const codegen::ConvPlan& full, const ConvSpec& spec) {
  const codegen::KernelPlan& kernel = full.convolution();
  const codegen::FamilyFunctions& functions = codegen::functions_of(full.family());
  // Fewer rows of dx than its stride are not of all phases.
  const codegen::Problem asked = codegen::lower(spec);
  if (functions.stores_pixels != nullptr && functions.stores_pixels(kernel.tiling) &&
      !codegen::can_store_pixels(codegen::sub_pixel_problem(asked), asked.epilogue))
    return std::nullopt;
  codegen::ConvPlan plan = codegen::plan_like(full, spec, 1);
  if (functions.keeps_kernel != nullptr && !functions.keeps_kernel(kernel, plan.convolution())) return std::nullopt;
  const codegen::OutputTiles all = output_tiles(kernel), left = output_tiles(plan.convolution());
  const bool walks = all.tiles * all.slabs > kernel.launch.blocks;
  plan.convolution().launch.blocks =
      static_cast<std::uint32_t>(left.slabs * (walks ? ceil_div(left.tiles, 3) : left.tiles));
  return plan;
}

/// Rows that are taken away in numbers that keep where runs begin and end. Wanted are two tiles and outputs that no
/// padding touches.
Axis rows_of_runs(const codegen::ConvPlan& plan, const codegen::OutputTiles& tiles) {
  const ConvSpec& spec = plan.spec;
  const std::int64_t rows = plan.convolution().problem.rows.output;
  Axis axis = spatial_axis(codegen::lower(spec).rows, tiles.rows);
  if (axis.tile > rows) return whole(rows);
  const auto wanted_are_enough = [&] {
    ConvSpec fewer_rows = spec;
    fewer_rows.input.h -= of_input(spec, axis.removed(axis.wanted), spec.stride.h);
    return axis.extent_of(axis.wanted) * tiles.row_outputs >= tiles.fewest_outputs && plan_for(plan, fewer_rows);
  };
  while (axis.wanted < axis.tiles() && !wanted_are_enough()) ++axis.wanted;
  return axis;
}

Axes axes_of(const codegen::ConvPlan& plan) {
  const codegen::Problem problem = codegen::lower(plan.spec);
  const codegen::OutputTiles tiles = output_tiles(plan.convolution());
  const auto axis_of = [](const codegen::Axis& axis, std::int64_t tile) {
    return tile > 0 ? spatial_axis(axis, tile) : whole(axis.output);
  };
  Axes axes{tiles.images > 0 ? image_tiles(problem, tiles.images)
                             : image_axis(problem, std::max<std::int64_t>(1, tiles.planes)),
            tiles.row_outputs > 0 ? rows_of_runs(plan, tiles) : axis_of(problem.rows, tiles.rows),
            axis_of(problem.columns, tiles.columns)};
  if (tiles.line_outputs > 0) {
    // Lengthen the rows until there are two blocks.
    const std::int64_t rows = axes.n.extent_of(axes.n.wanted) * axes.p.wanted;
    const std::int64_t wanted = ceil_div(tiles.line_outputs / rows + 1, axes.q.tile);
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
  const auto several = [](const Axis& axis, std::int64_t count) { return count > 1 || axis.tiles() == 1 ? 1 : 0; };
  for (const std::int64_t n : counts_of(axes.n)) {
    for (const std::int64_t p : counts_of(axes.p)) {
      for (const std::int64_t q : counts_of(axes.q)) {
        const ConvSpec spec = spec_with(full.spec, axes, {n, p, q});
        if (!has_outputs(spec)) continue;  // they are of padding alone
        std::optional<codegen::ConvPlan> plan = plan_for(full, spec);
        if (!plan) continue;
        Choice choice{*std::move(plan), {n, p, q}};
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
  const codegen::OutputTiles tiles = output_tiles(plan.convolution());
  const codegen::Problem& problem = plan.convolution().problem;
  const std::int64_t n =
      tiles.planes > 0 ? ceil_div(problem.n * problem.input_channels(), tiles.planes) : plan.spec.input.n;
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
    codegen::KernelPlan& kernel = result.plan.convolution();
    if (const auto shorten = codegen::functions_of(kernel.family()).shorten_tiles; shorten != nullptr) shorten(kernel);
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
