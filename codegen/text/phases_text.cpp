// See phases_text.h.
#include "codegen/text/phases_text.h"

#include <algorithm>
#include <cstdlib>

#include "fmt/format.h"

namespace jitconv::codegen {
namespace {

/// A table that is indexed at run time.
template <typename Value>
std::string table(std::string_view name, const AxisPhases& phases, Value value) {
  std::string list;
  for (const Phase& phase : phases.list) list += fmt::format("{}{}", list.empty() ? "" : ", ", value(phase));
  return fmt::format("__constant__ int {}[] = {{{}}};\n", name, list);
}

/// The phase of each residue, -1 for those of no phase.
std::string residue_table(std::string_view name, const AxisPhases& phases) {
  std::string list;
  std::size_t next = 0;
  for (std::int64_t residue = 0; residue < phases.stride; ++residue) {
    const bool meets = next < phases.list.size() && phases.list[next].pixel == residue;
    list += fmt::format("{}{}", list.empty() ? "" : ", ", meets ? static_cast<int>(next++) : -1);
  }
  return fmt::format("__constant__ int {}[] = {{{}}};\n", name, list);
}

/// The tap that a phase meets in the window's first: what defines it, and an expression.
struct FirstTaps {
  std::string definition, tap;
};

/// A sum where taps of neighbouring phases are equally far apart, as with two phases; lanes that have different phases
/// would read a table one after the other.
FirstTaps first_taps(std::string_view axis, const AxisPhases& phases, std::string_view phase) {
  const std::vector<Phase>& list = phases.list;
  const std::int64_t step = list.size() > 1 ? list[1].first_tap - list[0].first_tap : 1;
  const std::string first = fmt::format("kFirst{}", axis);
  const bool is_sum = std::ranges::adjacent_find(list, [&](const Phase& one, const Phase& next) {
                        return next.first_tap - one.first_tap != step;
                      }) == list.end();
  if (!is_sum)
    return {table(first, phases, [](const Phase& one) { return one.first_tap; }), fmt::format("{}[{}]", first, phase)};
  return {fmt::format("constexpr int {} = {};  // of the first phase\n", first, list[0].first_tap),
          fmt::format("{} {} {}{}", first, step < 0 ? "-" : "+", phase,
                      std::abs(step) == 1 ? "" : fmt::format(" * {}", std::abs(step)))};
}

std::string shift_table(std::string_view axis, const AxisPhases& phases) {
  if (!phases.is_shifted()) return {};
  return table(fmt::format("k{}Shift", axis), phases, [](const Phase& one) { return one.shift; });
}

}  // namespace

void add_filter_constants(Constants& c, const Problem& problem) {
  const Phases& phases = problem.phases;
  c.add("kPhaseChannels", problem.k / phases.count(), "of a phase of a group")
      .add("kColumnPhases", phases.columns.count());
  c.add("kFilterR", phases.rows.taps).add("kFilterS", phases.columns.taps, "taps in w");
  c.add("kRowStep", phases.rows.tap_step).add("kColumnStep", phases.columns.tap_step, "from tap to tap of a phase");
}

std::string filter_tap_function(const Problem& problem) {
  const FirstTaps rows = first_taps("Row", problem.phases.rows, "row_phase");
  const FirstTaps columns = first_taps("Column", problem.phases.columns, "column_phase");
  return fmt::format(
      "// The filter row, or column, that a phase meets in the window's first; those that the filter has not are "
      "zero.\n"
      "{}{}"
      "// The tap that a phase meets in the window's; -1 for none.\n"
      "__device__ __forceinline__ int filter_tap(int row_phase, int column_phase, int window_tap) {{\n"
      "  const int r = {} - window_tap / kS * kRowStep;\n"
      "  const int s = {} - window_tap % kS * kColumnStep;\n"
      "  return r >= 0 && r < kFilterR && s >= 0 && s < kFilterS ? r * kFilterS + s : -1;\n"
      "}}\n",
      rows.definition, columns.definition, rows.tap, columns.tap);
}

std::string filter_tap(const Phases& phases, std::string_view k, std::string_view window_tap) {
  if (phases.columns_innermost)
    return fmt::format("filter_tap({0} / (kPhaseChannels * kColumnPhases), {0} % kColumnPhases, {1})", k, window_tap);
  return fmt::format("filter_tap({0} / kPhaseChannels / kColumnPhases, {0} / kPhaseChannels % kColumnPhases, {1})", k,
                     window_tap);
}

std::string channel_of_phase(const Phases& phases, std::string_view k) {
  return fmt::format("{}{} % kPhaseChannels", k, phases.columns_innermost ? " / kColumnPhases" : "");
}

PhasePlace phase_place(const AxisPhases& phases, std::string_view axis, std::string_view index,
                       std::string_view phase) {
  const std::string stride = fmt::format("k{}Stride", axis);
  PhasePlace result;
  result.phase = fmt::format("{} % {}", index, stride);
  result.place = fmt::format("{} / {}", index, stride);
  result.may_miss = phases.count() < phases.stride;
  if (result.may_miss) {
    result.tables += residue_table(fmt::format("k{}Phase", axis), phases);
    result.phase = fmt::format("k{}Phase[{}]", axis, result.phase);
  }
  result.tables += shift_table(axis, phases);
  if (phases.is_shifted()) result.place += fmt::format(" + k{}Shift[{}]", axis, phase);
  return result;
}

std::string shift_tables(const Phases& phases) {
  return shift_table("Row", phases.rows) + shift_table("Column", phases.columns);
}

std::string first_pixel(const AxisPhases& phases, std::string_view axis, std::string_view phase) {
  return phases.is_shifted() ? fmt::format("{1} - k{0}Shift[{1}] * k{0}Stride", axis, phase) : std::string(phase);
}

}  // namespace jitconv::codegen
