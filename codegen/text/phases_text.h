// What a sub-pixel convolution and its passes print alike: which tap of the filter a phase meets in a tap of the
// window, and to which phase a pixel of dx belongs.
#pragma once

#include <string>

#include "codegen/text/emitter.h"

namespace jitconv::codegen {

/// Constants that filter_tap_function() needs besides kR and kS, the window's taps, for passes that read w.
void add_filter_constants(Constants& constants, const Problem& sub_pixel);

/// Tables, and the definition of filter_tap(): the filter's tap that a phase meets in a tap of the window, r * kFilterS
/// + s; -1 where there is none.
std::string filter_tap_function(const Problem& sub_pixel);
/// A call of it for output channel `k` of a group.
std::string filter_tap(const Phases& phases, std::string_view k, std::string_view window_tap);

/// Which channel of a phase the output channel `k` of a group is: an expression.
std::string channel_of_phase(const Phases& phases, std::string_view k);

/// What finds a pixel's sums along an axis.
struct PhasePlace {
  std::string tables;     ///< lines, may be empty
  std::string phase;      ///< of pixel `index`: an expression, negative if it meets no tap
  std::string place;      ///< an expression: the sum's index along the axis; `phase` is in scope
  bool may_miss = false;  ///< some pixels meet no tap
};

/// `axis` is "Row" or "Column", `index` the pixel's variable, "h", `phase` that of its phase, "row_phase".
PhasePlace phase_place(const AxisPhases& phases, std::string_view axis, std::string_view index, std::string_view phase);

/// Tables that first_pixel() needs, lines; empty if no phase is shifted.
std::string shift_tables(const Phases& phases);
/// An expression for the pixel that a phase has at output 0, negative if the phase is shifted. The axis has all phases.
std::string first_pixel(const AxisPhases& phases, std::string_view axis, std::string_view phase);

}  // namespace jitconv::codegen
