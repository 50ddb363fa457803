// kernel_name(): the family first, as a profiler may cut names short, then the convolution.
#include "codegen/text/kernel_name.h"

#include "fmt/format.h"

namespace jitconv::codegen {

std::string kernel_name(const ConvPlan& plan) {
  const FamilyFunctions& functions = functions_of(plan.family());
  std::string_view products;
  if (functions.split_products != nullptr) products = functions.split_products(plan.convolution().tiling);
  return fmt::format("jitconv_{}{}{}_{}", functions.name, products.empty() ? "" : "_", products, plan.convolution_name);
}

}  // namespace jitconv::codegen
