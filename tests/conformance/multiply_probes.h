// Probes of warpgroup multiplications: every type, few columns and many, operands in shared memory, swizzled as the
// TMA brings them and windows of such rows, and in registers.
#pragma once

#include <vector>

#include "conformance/probes.h"

namespace jitconv::test {

std::vector<Probe> multiply_probes();

}  // namespace jitconv::test
