// Random convolutions and gradients at the edges: tiny, narrow and odd extents, filters larger than the image, padding
// beyond the filter, every operation, type, layout, alignment, stride, group count and epilogue. A seed always gives
// the same case. Also the steps that make a failing case smaller. Runs nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "codegen/plan.h"
#include "jitconv/spec.h"
#include "jitconv/target.h"

namespace jitconv::test {

/// Multiplications of a convolution, those with padding included; of a data gradient, those with the zeros between the
/// pixels of dy, too.
std::int64_t products(const ConvSpec& spec);

/// The valid convolution of `seed`, of at most `most_products` multiplications. Its result has at least one element; N
/// is 0 in some weight gradients.
ConvSpec edge_spec(std::uint64_t seed, std::int64_t most_products);

/// The plan that `seed` runs `spec` with: the planner's choice for every second seed, else any candidate of any of the
/// families that have one, as a tuner might choose it.
codegen::ConvPlan edge_plan(std::uint64_t seed, const ConvSpec& spec, const Target& target);

/// Valid convolutions that are one step simpler: an extent halved or lowered by one, a field set to its default. The
/// largest steps come first.
std::vector<ConvSpec> simpler_specs(const ConvSpec& spec);

/// The simplest convolution that still fails and that simpler_specs() reaches from `failing` within `most_tries` calls
/// of `fails`.
ConvSpec shrink(const ConvSpec& failing, const std::function<bool(const ConvSpec&)>& fails, int most_tries);

}  // namespace jitconv::test
