// Random specs, and all candidates of one family for a spec, for statements that hold for each of them.
#pragma once

#include <rapidcheck.h>

#include <string>
#include <vector>

#include "codegen/plan.h"
#include "support/random_specs.h"

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

/// With outputs, where the filter fits.
inline ConvSpec any_spec_with_images(const SpecLimits& limits = {}) {
  ConvSpec spec = *valid_specs(limits);
  if (spec.input.n == 0) spec.input.n = 1;
  return spec;
}

inline ConvSpec any_depthwise_spec(Layout layout, const SpecLimits& limits = {}) {
  ConvSpec spec = any_spec_with_images(limits);
  const std::int64_t multiplier = *rc::gen::weightedElement<std::int64_t>({{4, 1}, {1, 2}, {1, 3}});
  spec.groups = spec.input.c;
  spec.weight.c = 1;
  spec.weight.k = spec.input.c * multiplier;
  spec.input_layout = spec.output_layout = layout;
  return spec;
}

}  // namespace jitconv::test
