// Every family and store with every epilogue, type and alignment, and with plans that the cost model would not choose:
// small convolutions, all outputs compared.
#include <gtest/gtest.h>

#include "gpu/gpu.h"
#include "support/case_lists.h"

namespace jitconv::test {
namespace {

using Variants = GpuTest;

void expect_every_family(const Report::Category& counts) {
  EXPECT_EQ(counts.families.size(), 3u) << "direct, depthwise, fallback";
  EXPECT_EQ(counts.failed, 0);
}

TEST_F(Variants, EveryEpilogue) {
  const std::vector<Case> cases = epilogue_cases(target());
  ASSERT_EQ(cases.size(), family_cases().size() * 3 * 13);
  expect_every_family(run_cases(device(), "epilogues", cases));
}

TEST_F(Variants, EveryAlignment) { expect_every_family(run_cases(device(), "alignments", alignment_cases(target()))); }

TEST_F(Variants, ManyCandidates) {
  const std::vector<Case> cases = candidate_cases(target(), /*first=*/25, /*spread=*/8);
  ASSERT_GE(cases.size(), 250u);
  expect_every_family(run_cases(device(), "candidates", cases));
}

}  // namespace
}  // namespace jitconv::test
