// kernel_name(): the family first, as a profiler may cut names short, then the convolution.
#include "codegen/text/kernel_name.h"

#include "fmt/format.h"

namespace jitconv::codegen {

std::string kernel_name(const ConvPlan& plan) {
  const FamilyFunctions& functions = functions_of(plan.family());
  const bool splits = functions.splits_operands != nullptr && functions.splits_operands(plan.convolution().tiling);
  return fmt::format("jitconv_{}{}_{}", functions.name, splits ? "_tf32x3" : "", plan.convolution_name);
}

}  // namespace jitconv::codegen
