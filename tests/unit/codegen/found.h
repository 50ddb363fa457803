// All candidates of one family for a spec, for statements that hold for each of them.
#pragma once

#include <rapidcheck.h>

#include <string>
#include <vector>

#include "codegen/plan.h"

namespace jitconv::test {

template <typename Tiling>
struct Found {
  ConvSpec spec;  ///< canonical
  codegen::Problem problem;
  Target target;
  Tiling tiling;
  codegen::ConvPlan plan;
};

template <typename Tiling>
std::vector<Found<Tiling>> found_candidates(const ConvSpec& spec, const Target& target) {
  std::vector<Found<Tiling>> found;
  for (const codegen::ConvPlan& plan : codegen::enumerate_plans(spec, target, SIZE_MAX))
    if (const auto* tiling = plan.tiling<Tiling>())
      found.push_back({plan.spec, plan.convolution().problem, plan.target, *tiling, plan});
  return found;
}

/// One of each generation, in a property.
inline Target any_target() {
  return parse_target(*rc::gen::elementOf(std::vector<std::string>{"sm_75", "sm_80", "sm_86", "sm_90a", "sm_120a"}));
}

}  // namespace jitconv::test
