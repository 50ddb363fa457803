// Kernels of a quick test: which plans of a small convolution are run, and how.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "codegen/plan.h"
#include "codegen/wgmma/geometry.h"
#include "support/runner.h"

namespace jitconv::test {

/// What execution on a CPU takes the place of, unless a case says otherwise.
inline const Target kTarget = Target::host(parse_target("sm_90a"));

using Wanted = std::function<bool(const codegen::ConvPlan&)>;

/// One convolution and which of its plans are run: the cheapest that is wanted and others evenly spread over the rest.
struct Quick {
  const char* what;
  std::string spec;
  std::size_t plans = 1;
  Wanted wanted = {};
  const char* arch = "sm_90a";
  std::uint32_t blocks = 0;  ///< of the launch; 0: the plan's
};

/// A case of a plan, on exact and on random data.
Case case_of(std::string what, codegen::ConvPlan plan);

/// What a template or the generator makes a difference of in a plan; empty if the plan is not wanted.
using Kind = std::function<std::string(const codegen::ConvPlan&)>;

/// Convolutions of which the cheapest plan that has a kind is run, and the cheapest of `others` more kinds, by turns.
/// Between them, the plans' kinds must have all of `parts`.
struct Kinds {
  Kind kind;
  std::size_t others = 1;
  std::vector<const char*> parts;
  std::vector<std::string> specs;
};

/// Plans of a family.
Wanted family(codegen::Family wanted);

/// Plans of the wgmma family whose tiling, or geometry, is `wanted`: those that transpose their input, of which there
/// are some of every kind, apart.
Wanted wgmma(std::function<bool(const codegen::WgmmaGeometry&)> wanted);
Wanted wgmma(std::function<bool(const codegen::WgmmaTiling&)> wanted);
Wanted transposed(std::function<bool(const codegen::WgmmaTiling&)> wanted);

/// Runs every one twice, on exact and on random data, and expects no finding, and as many plans as are asked for.
void run(const std::string& name, const std::vector<Quick>& list);

void run(const std::string& name, const Kinds& wanted);

/// The same of cases that have their plans, and two kinds of data.
void run(const std::string& name, const std::vector<Case>& cases);

}  // namespace jitconv::test
