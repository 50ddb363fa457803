// How far a result may be from the reference, derived from the arithmetic alone (docs/accuracy.md), and the comparison
// of a result with it. There is no tolerance to choose: a bound follows from the math mode, the reduction length, the
// type and the activation.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "jitconv/spec.h"
#include "tools/check/data.h"
#include "tools/check/reference.h"

namespace jitconv::check {

/// No correct kernel is further from `expected.y` than this, however it orders the sum.
double error_bound(const ConvSpec& spec, const Expected& expected);

/// What rounding errors that do not conspire add up to: sqrt(length) in place of length. Correct kernels exceed it
/// rarely; reported, never failed.
double likely_error(const ConvSpec& spec, const Expected& expected);

/// Exact data gives one right answer for this epilogue and dy_activation: nothing is rounded before the output is.
bool has_exact_epilogue(const ConvSpec& spec);

/// Outcome of comparing some outputs with the reference.
struct Comparison {
  std::int64_t compared = 0;
  std::int64_t wrong = 0;       ///< outside the bound, or unequal where data and epilogue are exact
  std::int64_t unlikely = 0;    ///< within the bound and above likely_error()
  std::int64_t trivial = 0;     ///< of those with terms: sums that are zero and so show little
  std::int64_t with_terms = 0;  ///< outputs whose window touches the input
  bool exact = false;           ///< compared for equality
  double worst_error = 0;       ///< largest |actual - expected|
  double worst_ratio = 0;       ///< largest error / bound, whether or not compared for equality
  std::string first_wrong;      ///< where, and both values

  /// Nothing wrong, and enough of the sums are not zero for that to mean something.
  bool passed() const { return wrong == 0 && !vacuous(); }
  /// More than half of the sums are zero, or nothing was compared although there is output.
  bool vacuous() const { return compared == 0 || 2 * trivial > with_terms; }
  /// One line.
  std::string text() const;
};

/// Compares actual[i] with expected[i], the element at positions[i]. Data of kind exact with an exact epilogue must
/// agree in every bit but the sign of a zero; all else must stay within error_bound().
Comparison compare(const ConvSpec& spec, DataKind kind, std::span<const std::int64_t> positions,
                   std::span<const Expected> expected, std::span<const float> actual);

}  // namespace jitconv::check
