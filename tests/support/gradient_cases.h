// Small gradients chosen so that they reach every family that computes gradients and every way it loads and stores,
// each with a plan of that family. No device here.
#pragma once

#include <vector>

#include "support/runner.h"

namespace jitconv::test {

/// Those that `target` has a family for. Throws std::logic_error if a family has no plan for one of them.
std::vector<Case> gradient_cases(const Target& target);

/// Both gradients with each dy_activation, and behind its pass each family that reads what it writes: small ones, on
/// exact and on random data.
std::vector<Case> activation_gradient_cases(const Target& target);

}  // namespace jitconv::test
