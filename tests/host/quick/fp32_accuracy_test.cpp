// math=fp32 and fp16x3 on tensor cores, whose accumulators the engine truncates as the hardware does: the largest
// errors are no larger than those of a loop of FMAs.
#include "support/fp32_accuracy.h"

#include <gtest/gtest.h>

#include "runtime/compile.h"
#include "support/fresh_cache.h"
#include "tools/host_device.h"

namespace jitconv::test {
namespace {

TEST(QuickFp32Accuracy, IsThatOfAnFmaLoop) {
  const FreshCache cache("fp32-accuracy");
  tools::HostDevice device{Target::host()};
  const std::vector<codegen::ConvPlan> plans = fp32_plans(Target::host(parse_target("sm_90a")));
  ASSERT_EQ(plans.size(), 7u);
  for (const codegen::ConvPlan& plan : plans) {
    const Kernel kernel = runtime::compile_plan(plan);
    for (const Numbers numbers : kAllNumbers) {
      const LargestErrors largest = largest_errors(device, kernel, numbers);
      EXPECT_LE(largest.kernel, largest.fma_loop) << to_string(plan.spec) << ", " << to_string(numbers);
      EXPECT_GT(largest.kernel, 0) << to_string(numbers) << ": nothing was rounded";
    }
  }
}

TEST(QuickFp32Accuracy, SpecialValuesAreThoseOfAnFmaLoop) {
  const FreshCache cache("fp32-accuracy");
  tools::HostDevice device{Target::host()};
  for (const codegen::ConvPlan& plan : fp32_plans(Target::host(parse_target("sm_90a")))) {
    const Kernel kernel = runtime::compile_plan(plan);
    for (const float others : {0.0f, 1.0f})
      EXPECT_EQ(special_value_faults(device, kernel, others), "") << to_string(plan.spec) << ", " << others;
  }
}

TEST(QuickFp32Accuracy, OfF16PairsIsThatOfAnFmaLoop) {
  const FreshCache cache("fp32-accuracy");
  tools::HostDevice device{Target::host()};
  const std::vector<codegen::ConvPlan> plans = fp16x3_plans(Target::host(parse_target("sm_90a")));
  ASSERT_EQ(plans.size(), 5u);
  for (const codegen::ConvPlan& plan : plans) {
    const Kernel kernel = runtime::compile_plan(plan);
    for (const Numbers numbers : kNumbersOfOneSize) {
      const LargestErrors largest = largest_errors(device, kernel, numbers);
      EXPECT_LE(largest.kernel, largest.fma_loop) << to_string(plan.spec) << ", " << to_string(numbers);
      EXPECT_GT(largest.kernel, 0) << to_string(numbers) << ": nothing was rounded";
    }
    // What one of both kernels that find ranges overlooks is infinite.
    const WeightShape& filter = plan.spec.weight;
    EXPECT_LE(largest_errors(device, kernel, Numbers::planted).kernel, filter.c * filter.r * filter.s);
    for (const float others : {0.0f, 1.0f})
      EXPECT_EQ(special_value_faults(device, kernel, others), "") << to_string(plan.spec) << ", " << others;
  }
}

}  // namespace
}  // namespace jitconv::test
