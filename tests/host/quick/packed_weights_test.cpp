// Weights packed ahead of the launches, with every access checked: the same bits as packing in each launch.
#include "support/packed_weights.h"

#include <gtest/gtest.h>

#include "runtime/compile.h"
#include "support/fresh_cache.h"
#include "tools/host_device.h"

namespace jitconv::test {
namespace {

TEST(QuickPackedWeights, GiveTheSameBits) {
  const FreshCache cache("packed-weights");
  tools::HostDevice device{Target::host()};
  const std::vector<PackingCase> cases = packing_cases(Target::host(parse_target("sm_90a")));
  ASSERT_EQ(cases.size(), 9u);
  Report::Category counts;
  for (const PackingCase& one : cases)
    EXPECT_EQ(packing_fault(device, runtime::compile_plan(one.plan), counts), "") << one.name;
  EXPECT_EQ(counts.launches, 3 * counts.kernels);
}

TEST(QuickPackedWeights, LieAsTheMultiplicationsTakeThem) {
  const FreshCache cache("packed-layout");
  tools::HostDevice device{Target::host()};
  const std::vector<codegen::ConvPlan> plans = layout_plans(Target::host(parse_target("sm_90a")));
  ASSERT_EQ(plans.size(), 22u);
  for (const codegen::ConvPlan& plan : plans)
    EXPECT_EQ(packed_bytes_fault(device, runtime::compile_plan(plan)), "") << to_string(plan.spec);
}

TEST(QuickPackedWeights, OnlyKernelsForHopperPackThem) {
  EXPECT_TRUE(packing_cases(Target::host(parse_target("sm_80"))).empty());
}

}  // namespace
}  // namespace jitconv::test
