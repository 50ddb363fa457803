// Data gradients with a stride as dense convolutions (sub-pixel convolution). A pixel of dx meets only the taps that
// its index modulo the stride lets it meet, so dx falls into phases, each a convolution of dy with a few of the taps.
// All of them together are one convolution with stride 1 whose output channels are the channels of every phase. A
// kernel stores the pixels of each phase where they lie in dx, or its sums are interleaved by a pass behind it
// (reduce/).
#pragma once

#include <optional>

#include "codegen/problem.h"

namespace jitconv::codegen {

/// The dense convolution that computes the phases of `gradient`, a data gradient: output channels and taps as Phases
/// has them, fp32 sums in a region of scratch that lies like dx, no epilogue. It has no phases if no pixel meets a tap,
/// or if strides or planes are more than the passes can count.
Problem sub_pixel_problem(const Problem& gradient);

/// Whether a kernel may store the pixels of dx in place of sums: not if a pixel that meets no tap would not be written,
/// as it lies elsewhere than behind the only phase's or has an epilogue (`epilogue` is the gradient's), or if places in
/// a plane need more than 32 bits.
bool can_store_pixels(const Problem& sub_pixel, const Epilogue& epilogue);

/// The same convolution for kernels that do, of dx's type and with its epilogue; none if none can.
/// Phases::stores_pixels is set, and `output` is dx, but for its extents and strides, which are those of the phases. Of
/// NCHW tensors the phases of columns are innermost, so that a tile has whole runs of a row of dx.
std::optional<Problem> pixel_storing_problem(const Problem& gradient, const Problem& sub_pixel);

/// Whether `problem`, as it is asked for, is no dense convolution, but its sub-pixel problem may be one: an input that
/// is upsampled by a stride, or one that is cropped.
inline bool needs_phases(const Problem& problem) { return problem.is_upsampled() || problem.is_cropped(); }

/// Phases that are outermost among output channels: all, or those of rows where columns are innermost.
inline std::int64_t outer_phases(const Phases& phases) {
  return phases.columns_innermost ? phases.rows.count() : phases.count();
}

/// Whether a phase of the axis meets a tap of the filter in a tap of the window.
bool meets_tap(const AxisPhases& axis, const Phase& phase, std::int64_t window_tap);

/// Products with weights that the filter does not have, in per cent of all of a sub-pixel convolution's.
int zero_percent(const Problem& sub_pixel);

}  // namespace jitconv::codegen
