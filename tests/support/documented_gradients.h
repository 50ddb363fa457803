// The gradients of the documented configurations, which every suite runs beside the configurations themselves.
#pragma once

#include <string>
#include <vector>

#include "tools/documented.h"

namespace jitconv::test {

/// Both gradients of each forward convolution, the weight gradient of each transposed one: "A data_gradient".
inline std::vector<tools::DocumentedConfiguration> documented_gradients() {
  std::vector<tools::DocumentedConfiguration> gradients;
  for (const tools::DocumentedConfiguration& one : tools::documented_configurations()) {
    for (const Operation operation : {Operation::data_gradient, Operation::weight_gradient}) {
      if (operation == one.spec.operation) continue;
      gradients.push_back({one.name + " " + std::string(to_string(operation)), one.spec});
      gradients.back().spec.operation = operation;
    }
  }
  return gradients;
}

}  // namespace jitconv::test
