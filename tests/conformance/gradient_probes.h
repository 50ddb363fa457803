// Probes of what only the kernels of gradients use: copies of elements as they are, shifted words, vectors of sums.
#pragma once

#include <vector>

#include "conformance/probes.h"

namespace jitconv::test {

std::vector<Probe> gradient_probes();

}  // namespace jitconv::test
