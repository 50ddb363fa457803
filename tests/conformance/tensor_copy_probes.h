// Probes of copies by tensor maps: boxes and im2col copies that reach out of their tensors, swizzled and rounded on the
// way, and boxes on the way back.
#pragma once

#include <vector>

#include "conformance/probes.h"

namespace jitconv::test {

std::vector<Probe> tensor_copy_probes();

}  // namespace jitconv::test
