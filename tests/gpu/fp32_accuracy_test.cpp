// math=fp32 on tensor cores: the largest errors are no larger than those of a loop of FMAs.
#include "support/fp32_accuracy.h"

#include <gtest/gtest.h>

#include "gpu/gpu.h"
#include "runtime/compile.h"

namespace jitconv::test {
namespace {

class Fp32Accuracy : public GpuTest {};

TEST_F(Fp32Accuracy, IsThatOfAnFmaLoop) {
  const std::vector<codegen::ConvPlan> plans = fp32_plans(target());
  if (plans.empty()) GTEST_SKIP() << "no tensor cores serve math=fp32 on " << target().arch();
  for (const codegen::ConvPlan& plan : plans) {
    const Kernel kernel = runtime::compile_plan(plan);
    for (const Numbers numbers : kAllNumbers) {
      const LargestErrors largest = largest_errors(device(), kernel, numbers);
      EXPECT_LE(largest.kernel, largest.fma_loop) << to_string(plan.spec) << ", " << to_string(numbers);
    }
  }
}

TEST_F(Fp32Accuracy, SpecialValuesAreThoseOfAnFmaLoop) {
  const std::vector<codegen::ConvPlan> plans = fp32_plans(target());
  if (plans.empty()) GTEST_SKIP() << "no tensor cores serve math=fp32 on " << target().arch();
  for (const codegen::ConvPlan& plan : plans) {
    const Kernel kernel = runtime::compile_plan(plan);
    for (const float others : {0.0f, 1.0f})
      EXPECT_EQ(special_value_faults(device(), kernel, others), "") << to_string(plan.spec) << ", " << others;
  }
}

TEST_F(Fp32Accuracy, OfF16PairsIsThatOfAnFmaLoop) {
  const std::vector<codegen::ConvPlan> plans = fp16x3_plans(target());
  if (plans.empty()) GTEST_SKIP() << "no tensor cores serve math=fp16x3 on " << target().arch();
  for (const codegen::ConvPlan& plan : plans) {
    const Kernel kernel = runtime::compile_plan(plan);
    for (const Numbers numbers : kNumbersOfOneSize) {
      const LargestErrors largest = largest_errors(device(), kernel, numbers);
      EXPECT_LE(largest.kernel, largest.fma_loop) << to_string(plan.spec) << ", " << to_string(numbers);
    }
    for (const float others : {0.0f, 1.0f})
      EXPECT_EQ(special_value_faults(device(), kernel, others), "") << to_string(plan.spec) << ", " << others;
  }
}

}  // namespace
}  // namespace jitconv::test
