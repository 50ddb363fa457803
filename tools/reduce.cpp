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
#include "codegen/heuristics.h"
#include "tools/check/data.h"

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

/// What decides which outputs of one axis see padding.
struct Window {
  std::int64_t input, pad, stride, reach;  ///< reach: from the first tap to the last
};

/// Wanted are two tiles and, where padding is seen, one more that sees none, between those that do.
Axis spatial_axis(std::int64_t extent, std::int64_t tile, const Window& window) {
  Axis axis{extent, tile, 1};
  const std::int64_t head = std::min(extent, ceil_div(window.pad, window.stride));
  const std::int64_t last_inside = floor_div(window.input - 1 + window.pad - window.reach, window.stride);
  const std::int64_t tail = std::clamp<std::int64_t>(std::max(extent - 1 - last_inside, extent % tile), 0, extent);
  const std::int64_t tail_tiles = tail > 0 ? axis.tiles() - (extent - tail) / tile : 0;
  axis.wanted = std::min(axis.tiles(), std::max<std::int64_t>(2, ceil_div(head, tile) + 1 + tail_tiles));
  return axis;
}

/// Depthwise tiles that hold several planes end raggedly at the last plane; N shrinks so that they still do.
Axis image_axis(const ConvSpec& spec, std::int64_t planes_per_tile) {
  const std::int64_t step = planes_per_tile / std::gcd(planes_per_tile, spec.input.c);
  Axis axis{spec.input.n, step, 1};
  while (axis.wanted < axis.tiles() &&
         (axis.extent_of(axis.wanted) < 2 || axis.extent_of(axis.wanted) * spec.input.c <= planes_per_tile))
    ++axis.wanted;
  return axis;
}

/// Tiles of several images: wanted are two, or what there is.
Axis image_tiles(const ConvSpec& spec, std::int64_t images) {
  Axis axis{spec.input.n, images, 1};
  axis.wanted = std::min<std::int64_t>(axis.tiles(), 2);
  return axis;
}

struct Axes {
  Axis n, p, q;
};

/// Whether a kernel for fewer rows is the same text, sizes apart. How long a plane is decides on these.
bool keeps_kernel(const codegen::TensorTiling& tiling, const ConvSpec& full, const ConvSpec& fewer_rows) {
  const auto decisions = [&](const ConvSpec& asked) {
    const ConvSpec spec = tiling.convolved_spec(asked);
    return std::tuple(tiling.stores_bulk(spec), tiling.row_ends(spec), tiling.copies_boxes(spec),
                      tiling.copies_pixels() ? tiling.raw_pitch(spec) : 0);
  };
  return decisions(fewer_rows) == decisions(full);
}

/// Tensor tiles are runs of a whole plane of outputs, so rows keep their length and are taken away in numbers that keep
/// the phase of planes within sectors, or of runs that are stored as boxes, and end with their row, within tiles.
/// Wanted are two tiles and outputs that no padding touches.
Axis tensor_rows(const codegen::TensorTiling& tiling, const ConvSpec& spec, const TensorShape& out) {
  if (tiling.images > 0) return {out.h, out.h, 1};
  const std::int64_t row = tiling.run_row(tiling.convolved_spec(spec)), runs = tiling.runs();
  const std::int64_t sector = codegen::TensorTiling::sector_elements(spec);
  const std::int64_t run = tiling.window + codegen::TensorTiling::slack(spec);
  std::int64_t step = sector / std::gcd(sector, out.w);
  if (tiling.copies_pixels()) {  // which need planes of x to be whole vectors
    const std::int64_t vector = 16 / element_bytes(spec.dtype);
    step = std::lcm(step, vector / std::gcd(vector, spec.input.w * spec.stride.h));
  }
  if (tiling.stores_boxes() && row % tiling.columns == 0) step = runs / std::gcd(runs, row / tiling.columns);
  Axis axis = spatial_axis(out.h, codegen::round_up(ceil_div(2 * run, row), step),
                           {spec.input.h, spec.padding.top, spec.stride.h, (spec.weight.r - 1) * spec.dilation.h});
  if (axis.tile > out.h) return {out.h, out.h, 1};
  const auto wanted_are_enough = [&] {
    ConvSpec fewer_rows = spec;
    fewer_rows.input.h -= axis.removed(axis.wanted) * spec.stride.h;
    return axis.extent_of(axis.wanted) * row >= 2 * runs * run && keeps_kernel(tiling, spec, fewer_rows);
  };
  while (axis.wanted < axis.tiles() && !wanted_are_enough()) ++axis.wanted;
  return axis;
}

/// Tiles of the pointwise family are runs of the pixels of all images, which rows are taken from in numbers that keep a
/// plane's remainder modulo a tile's pixels. Wanted are two tiles, or an image if tiles span images.
Axis pointwise_rows(const codegen::PointwiseTiling& tiling, const ConvSpec& spec) {
  const std::int64_t tile = tiling.block_pixels();
  Axis axis{spec.input.h, tile / std::gcd(tile, spec.input.w), 1};
  if (axis.tile > axis.extent) return {axis.extent, axis.extent, 1};
  while (axis.wanted < axis.tiles() && axis.extent_of(axis.wanted) * spec.input.w < 2 * tile) ++axis.wanted;
  return axis;
}

Axes axes_of(const codegen::ConvPlan& plan) {
  const ConvSpec& spec = plan.spec;
  const TensorShape out = output_shape(spec);
  std::int64_t tile_p = 1, tile_q = 1, planes = 1;
  if (const auto* direct = std::get_if<codegen::DirectTiling>(&plan.tiling)) {
    tile_p = direct->block_p(), tile_q = direct->block_q();
  } else if (const auto* depthwise = std::get_if<codegen::DepthwiseTiling>(&plan.tiling)) {
    tile_p = depthwise->tile_p(), tile_q = depthwise->tile_q(), planes = depthwise->planes;
  }
  Axes axes{image_axis(spec, planes),
            spatial_axis(out.h, tile_p,
                         {spec.input.h, spec.padding.top, spec.stride.h, (spec.weight.r - 1) * spec.dilation.h}),
            spatial_axis(out.w, tile_q,
                         {spec.input.w, spec.padding.left, spec.stride.w, (spec.weight.s - 1) * spec.dilation.w})};
  if (const auto* tensor = std::get_if<codegen::TensorTiling>(&plan.tiling)) {
    axes.p = tensor_rows(*tensor, spec, out);
    axes.q = {out.w, out.w, 1};
    // Runs of whole images end raggedly at the last image.
    if (tensor->images > 0) axes.n = image_tiles(spec, std::int64_t{tensor->runs()} * tensor->images);
  }
  if (const auto* pointwise = std::get_if<codegen::PointwiseTiling>(&plan.tiling)) {
    axes.p = pointwise_rows(*pointwise, spec);
    axes.q = {out.w, out.w, 1};
  }
  if (const auto* fallback = std::get_if<codegen::FallbackTiling>(&plan.tiling)) {
    // Blocks run over the pixels of all images as one line: lengthen the rows until there are two.
    constexpr std::int64_t kThreads = 256;
    const std::int64_t rows = axes.n.extent_of(axes.n.wanted) * axes.p.wanted;
    axes.q.wanted = std::clamp(kThreads * fallback->thread_pixels / rows + 1, axes.q.wanted, out.w);
  }
  return axes;
}

struct Counts {
  std::int64_t n, p, q;
};

ConvSpec spec_with(const ConvSpec& full, const Axes& axes, const Counts& counts) {
  ConvSpec spec = full;
  spec.input.n = axes.n.extent_of(counts.n);
  spec.input.h -= axes.p.removed(counts.p) * full.stride.h;
  spec.input.w -= axes.q.removed(counts.q) * full.stride.w;
  return spec;
}

/// Blocks of a launch that computes `spec` with the tiling of `full`.
std::int64_t blocks_of(const codegen::ConvPlan& full, const ConvSpec& spec) {
  const TensorShape out = output_shape(spec);
  if (const auto* tensor = std::get_if<codegen::TensorTiling>(&full.tiling)) {
    // Blocks that walk over tiles still walk over two or three.
    const std::int64_t tiles = tensor->tiles(tensor->convolved_spec(spec));
    return tensor->tiles(tensor->convolved_spec(full.spec)) > full.blocks ? ceil_div(tiles, 3) : tiles;
  }
  if (const auto* pointwise = std::get_if<codegen::PointwiseTiling>(&full.tiling)) {
    const std::int64_t tiles = pointwise->tiles(spec), slabs = pointwise->slabs(spec);
    return slabs * (pointwise->tiles(full.spec) * slabs > full.blocks ? ceil_div(tiles, 3) : tiles);
  }
  if (const auto* direct = std::get_if<codegen::DirectTiling>(&full.tiling)) {
    return out.n * spec.groups * ceil_div(spec.weight.k / spec.groups, direct->block_k()) *
           ceil_div(out.h, direct->block_p()) * ceil_div(out.w, direct->block_q());
  }
  if (const auto* depthwise = std::get_if<codegen::DepthwiseTiling>(&full.tiling)) {
    return ceil_div(spec.input.n * spec.input.c, depthwise->planes) * ceil_div(out.h, depthwise->tile_p()) *
           ceil_div(out.w, depthwise->tile_q());
  }
  return codegen::fallback_candidates(spec, full.target).front().work.blocks;
}

/// The plan of `full` for a spec of which tiles are left. The planner is not asked: it might prefer another tiling.
codegen::ConvPlan plan_like(const codegen::ConvPlan& full, const ConvSpec& spec) {
  codegen::ConvPlan plan = full;
  plan.spec = spec;
  plan.blocks = static_cast<std::uint32_t>(blocks_of(full, spec));
  plan.workspace = codegen::workspace_of(full.tiling, spec);
  return plan;
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
  const auto* tensor = std::get_if<codegen::TensorTiling>(&full.tiling);
  const auto several = [](const Axis& axis, std::int64_t count) { return count > 1 || axis.tiles() == 1 ? 1 : 0; };
  for (const std::int64_t n : counts_of(axes.n)) {
    for (const std::int64_t p : counts_of(axes.p)) {
      for (const std::int64_t q : counts_of(axes.q)) {
        const ConvSpec spec = spec_with(full.spec, axes, {n, p, q});
        if (spec.input.h < 1 || spec.input.w < 1) continue;  // outputs of padding alone
        if (tensor != nullptr && !keeps_kernel(*tensor, full.spec, spec)) continue;
        Choice choice{plan_like(full, spec), {n, p, q}};
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
  const Axes axes = axes_of(plan);
  std::int64_t n = plan.spec.input.n;
  if (const auto* depthwise = std::get_if<codegen::DepthwiseTiling>(&plan.tiling))
    n = ceil_div(n * plan.spec.input.c, depthwise->planes);
  return {n, axes.p.tiles(), axes.q.tiles()};
}

}  // namespace

std::int64_t multiply_adds(const ConvSpec& spec) {
  return check::element_count(output_shape(spec)) * check::reduction_length(spec);
}

std::int64_t executed_multiply_adds(const codegen::ConvPlan& plan) {
  const ConvSpec& spec = plan.spec;
  const std::int64_t taps = spec.weight.r * spec.weight.s, blocks = plan.blocks;
  if (const auto* tensor = std::get_if<codegen::TensorTiling>(&plan.tiling)) {
    const std::int64_t channels = std::int64_t{tensor->block_k} * tensor->runs();  // of a run, and again of the other
    return tensor->tiles(tensor->convolved_spec(spec)) / tensor->splits * channels * tensor->columns *
           tensor->steps(spec) * tensor->units(spec) * codegen::TensorTiling::slice_channels(spec);
  }
  if (const auto* pointwise = std::get_if<codegen::PointwiseTiling>(&plan.tiling)) {
    return pointwise->tiles(spec) * pointwise->block_pixels() * spec.groups * pointwise->tiles_k(spec) *
           pointwise->block_k() * spec.weight.c;
  }
  if (const auto* direct = std::get_if<codegen::DirectTiling>(&plan.tiling)) {
    const std::int64_t channels = codegen::round_up(spec.weight.c, direct->chunk_c);
    return blocks * direct->block_k() * direct->block_p() * direct->block_q() * channels * taps;
  }
  if (const auto* depthwise = std::get_if<codegen::DepthwiseTiling>(&plan.tiling)) {
    const std::int64_t multiplier = spec.weight.k / spec.groups;
    return blocks * depthwise->planes * depthwise->tile_p() * depthwise->tile_q() * multiplier * taps;
  }
  if (const auto* fallback = std::get_if<codegen::FallbackTiling>(&plan.tiling))
    return blocks * plan.threads * fallback->thread_k * fallback->thread_pixels * spec.weight.c * taps;
  return 0;
}

Reduction reduce(const ConvSpec& spec, const Target& target, const WorkLimits& limits) {
  Reduction result;
  result.plan = codegen::make_plan(spec, target);
  result.multiply_adds = executed_multiply_adds(result.plan);
  if (result.multiply_adds > limits.as_given) {
    const Axes axes = axes_of(result.plan);
    Choice choice = best_choice(result.plan, axes, limits.most);
    result.reduced = choice.plan.spec != result.plan.spec;
    result.plan = std::move(choice.plan);
    result.multiply_adds = choice.multiply_adds;
    result.note = missing(axes, choice.counts, choice.multiply_adds, limits.most);
  }
  if (result.plan.family != codegen::Family::none) result.tiles = tiles_of(result.plan);
  return result;
}

}  // namespace jitconv::tools
