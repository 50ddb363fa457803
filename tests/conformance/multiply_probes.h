// Probes of warpgroup multiplications: every type, few columns and many, operands in shared memory as threads store
// them, and in registers. Swizzled operands are in swizzled_multiply_probes.h.
#pragma once

#include <vector>

#include "conformance/probes.h"

namespace jitconv::test {

std::vector<Probe> multiply_probes();

}  // namespace jitconv::test
