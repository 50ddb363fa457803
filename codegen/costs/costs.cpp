// Which tables serve which target.
#include "codegen/costs/costs.h"

#include "codegen/costs/h200.h"

namespace jitconv::codegen {

const Costs& costs_of(const Target& /*target*/) { return kH200Costs; }

}  // namespace jitconv::codegen
