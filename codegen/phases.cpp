// See phases.h.
#include "codegen/phases.h"

#include <algorithm>
#include <numeric>

#include "codegen/arithmetic.h"

namespace jitconv::codegen {
namespace {

constexpr std::int64_t kMostStride = 256;  // the passes have tables of as many numbers

/// The taps that a phase meets, and where: pixel j of the phase meets pixel j + last_place - t * dilation of dy in tap
/// first + t * tap_step.
struct PhaseTaps {
  std::int64_t pixel = 0, first = 0, count = 0, last_place = 0;
};

/// How the gradient along an axis falls into phases, and the dense convolution's axis.
class AxisSplit {
 public:
  explicit AxisSplit(const Axis& gradient) : gradient_(gradient) {
    const std::int64_t stride = gradient.upsampling, common = std::gcd(stride, gradient.dilation);
    phases_.stride = stride;
    phases_.taps = gradient.taps;
    phases_.pixels = gradient.output;
    phases_.tap_step = stride / common;
    dense_.input = gradient.input;
    dense_.dilation = gradient.dilation / common;
    find_taps();
    if (!taps_.empty()) place_taps();
  }

  const AxisPhases& phases() const { return phases_; }
  const Axis& dense() const { return dense_; }

 private:
  /// The padding of the convolution whose gradient this is.
  std::int64_t forward_pad() const { return gradient_.reach() - gradient_.pad; }

  /// Each of the taps before they repeat modulo the stride is the first of one phase: pixels of the others meet none.
  void find_taps() {
    const std::int64_t stride = phases_.stride, dilation = gradient_.dilation;
    if (stride > kMostStride) return;
    for (std::int64_t first = 0; first < std::min(phases_.tap_step, phases_.taps); ++first) {
      const std::int64_t pixel = positive_modulo(first * dilation - forward_pad(), stride);
      if (pixel < gradient_.output)
        taps_.push_back({pixel, first, ceil_div(phases_.taps - first, phases_.tap_step),
                         (pixel + forward_pad() - first * dilation) / stride});
    }
    std::ranges::sort(taps_, {}, &PhaseTaps::pixel);
    for (const PhaseTaps& taps : taps_) dense_.taps = std::max(dense_.taps, taps.count);
  }

  /// Where a phase's first tap of dy lies, if its taps are the window's last `count`.
  std::int64_t first_place(const PhaseTaps& taps) const { return taps.last_place - (taps.count - 1) * dense_.dilation; }

  /// Taps of the window before those of a phase, such that the window starts at `start` or as little as possible
  /// behind it; negative if it must start before.
  std::int64_t taps_before(const PhaseTaps& taps, std::int64_t start) const {
    const std::int64_t between = first_place(taps) - start;
    return between < 0 ? -1 : std::min(dense_.taps - taps.count, between / dense_.dilation);
  }

  std::int64_t window_start(const PhaseTaps& taps, std::int64_t start) const {
    return first_place(taps) - taps_before(taps, start) * dense_.dilation;
  }

  /// Outputs that are computed if windows start at `start` for output 0; 0 if some phase cannot.
  std::int64_t outputs(std::int64_t start) const {
    std::int64_t most = 0;
    for (const PhaseTaps& taps : taps_) {
      if (taps_before(taps, start) < 0) return 0;
      most =
          std::max(most, ceil_div(gradient_.output - taps.pixel, phases_.stride) + window_start(taps, start) - start);
    }
    return most;
  }

  /// Phases share the window. One whose taps lie elsewhere in dy has its pixels at other outputs: they are shifted, so
  /// that the window is no longer than the most taps of a phase.
  void place_taps() {
    std::int64_t start = 0;
    for (const PhaseTaps& taps : taps_) {
      const std::int64_t candidate = first_place(taps), computed = outputs(candidate);
      if (computed > 0 && (dense_.output == 0 || computed < dense_.output)) {
        start = candidate;
        dense_.output = computed;
      }
    }
    // Pixels before dy's first that no phase meets are outputs that nobody reads: an input cannot be cropped.
    const std::int64_t cropped = std::max<std::int64_t>(0, start);
    dense_.pad = cropped - start;
    dense_.output += cropped;
    for (const PhaseTaps& taps : taps_) {
      const std::int64_t last = taps.count - 1 + taps_before(taps, start);
      phases_.list.push_back(
          {taps.pixel, window_start(taps, start) - start + cropped, taps.first + last * phases_.tap_step});
    }
  }

  Axis gradient_, dense_{.output = 0};
  AxisPhases phases_;
  std::vector<PhaseTaps> taps_;
};

/// A view of the phases' outputs, dense as `layout` says.
View phases_view(Tensor tensor, DataType type, Layout layout, const Problem& problem) {
  return {tensor, type, dense_strides(layout, problem.output_channels(), problem.rows.output, problem.columns.output)};
}

/// Places of the dense convolution's outputs among the pixels of dx, and of as many behind them as tiles end in.
std::int64_t places(const AxisPhases& phases, const Axis& dense) {
  constexpr std::int64_t kBehind = 512;
  return (dense.output + kBehind) * phases.stride;
}

}  // namespace

Problem sub_pixel_problem(const Problem& gradient) {
  const AxisSplit rows(gradient.rows), columns(gradient.columns);
  Problem problem = gradient;
  problem.phases = {rows.phases(), columns.phases()};
  if (gradient.output_plane() > INT32_MAX) problem.phases = {};
  if (!problem.is_sub_pixel()) return problem;
  problem.k = gradient.k * problem.phases.count();
  problem.rows = rows.dense();
  problem.columns = columns.dense();
  problem.output = phases_view(Tensor::scratch, DataType::f32, gradient.output.layout(), problem);
  problem.epilogue = {};
  return problem;
}

bool can_store_pixels(const Problem& sub_pixel, const Epilogue& epilogue) {
  const AxisPhases &rows = sub_pixel.phases.rows, &columns = sub_pixel.phases.columns;
  const auto writes_all = [&](const AxisPhases& axis) {
    if (!axis.has_zeros()) return true;
    return axis.count() == 1 && axis.list[0].pixel == 0 && !axis.is_shifted() && epilogue == Epilogue{};
  };
  if (!sub_pixel.is_sub_pixel() || !writes_all(rows) || !writes_all(columns)) return false;
  return places(rows, sub_pixel.rows) <= INT32_MAX / places(columns, sub_pixel.columns);
}

std::optional<Problem> pixel_storing_problem(const Problem& gradient, const Problem& sub_pixel) {
  if (!can_store_pixels(sub_pixel, gradient.epilogue)) return {};
  const Layout layout = gradient.output.layout();
  Problem problem = sub_pixel;
  problem.phases.stores_pixels = true;
  problem.phases.columns_innermost = layout == Layout::nchw;
  problem.output = phases_view(gradient.output.tensor, gradient.output.type, layout, problem);
  problem.epilogue = gradient.epilogue;
  return problem;
}

bool meets_tap(const AxisPhases& axis, const Phase& phase, std::int64_t window_tap) {
  const std::int64_t tap = phase.first_tap - window_tap * axis.tap_step;
  return tap >= 0 && tap < axis.taps;
}

int zero_percent(const Problem& problem) {
  const auto met = [](const AxisPhases& axis, std::int64_t window_taps) {
    std::int64_t taps = 0;
    for (const Phase& phase : axis.list)
      for (std::int64_t tap = 0; tap < window_taps; ++tap) taps += meets_tap(axis, phase, tap) ? 1 : 0;
    return taps;
  };
  const Phases& phases = problem.phases;
  const std::int64_t all = phases.count() * problem.taps();
  return static_cast<int>(100 -
                          100 * met(phases.rows, problem.rows.taps) * met(phases.columns, problem.columns.taps) / all);
}

}  // namespace jitconv::codegen
