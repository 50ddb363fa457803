// Probes of warpgroup multiplications whose operands lie swizzled, as TMA brings them: boxes, windows of the same rows,
// rows that are pixels, and planes. Operands as threads store them are in multiply_probes.h.
#pragma once

#include <vector>

#include "conformance/probes.h"

namespace jitconv::test {

std::vector<Probe> swizzled_multiply_probes();

}  // namespace jitconv::test
