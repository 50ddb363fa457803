// The convolutions whose generated sources are kept under review in this folder, one .cu each, all for sm_90a.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "codegen/plan.h"

namespace jitconv::test {

struct GoldenCase {
  std::string name;  ///< of the file, without .cu
  ConvSpec spec;
  codegen::Family family;  ///< what the case is here to show; so is
  std::string shows;       ///< this, a part of the source's text
  /// The cheapest plan of this kind is printed; without a kind, the planner's choice.
  std::function<bool(const codegen::ConvPlan&)> kind;
};

inline void PrintTo(const GoldenCase& one, std::ostream* stream) { *stream << one.name; }

const std::vector<GoldenCase>& golden_cases();

codegen::ConvPlan golden_plan(const GoldenCase& one);

/// The complete source, as generate() prints it.
std::string golden_source(const GoldenCase& one);

}  // namespace jitconv::test
