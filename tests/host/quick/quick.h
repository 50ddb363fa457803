// Kernels of a quick test: which plans of a small convolution are run, and how.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "codegen/plan.h"

namespace jitconv::test {

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

/// Plans of a family.
Wanted family(codegen::Family wanted);

/// Plans of the tensor family whose tiling, and the spec that it is for, are `wanted`: those that transpose pixels, of
/// which there are some of every kind, apart.
Wanted tensor(std::function<bool(const codegen::WgmmaTiling&, const ConvSpec&)> wanted);
Wanted tensor(std::function<bool(const codegen::WgmmaTiling&)> wanted);
Wanted transposed(std::function<bool(const codegen::WgmmaTiling&)> wanted);

/// Runs every one twice, on exact and on random data, and expects no finding, and as many plans as are asked for.
void run(const std::string& name, const std::vector<Quick>& list);

}  // namespace jitconv::test
