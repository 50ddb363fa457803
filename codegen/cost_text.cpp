// Choice of the unit.
#include "codegen/cost_text.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

namespace jitconv::codegen {

std::string cost_text(std::int64_t picoseconds) {
  constexpr std::array<std::string_view, 3> kUnits = {"us", "ms", "s"};
  // From here on three digits would round to 1000 of the unit.
  constexpr double kNextUnit = 999.5;
  double value = static_cast<double>(picoseconds) * 1e-6;
  std::size_t unit = 0;
  for (; value >= kNextUnit && unit + 1 < kUnits.size(); ++unit) value /= 1000;
  return value < kNextUnit ? fmt::format("{:.3g} {}", value, kUnits[unit])
                           : fmt::format("{:.0f} {}", value, kUnits[unit]);
}

}  // namespace jitconv::codegen
