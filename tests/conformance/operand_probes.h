// Probes of the functions that make operands of elements: rounding to TF32, split operands and their promoted sums, and
// 16-bit pairs.
#pragma once

#include <vector>

#include "conformance/probes.h"

namespace jitconv::test {

std::vector<Probe> operand_probes();

}  // namespace jitconv::test
