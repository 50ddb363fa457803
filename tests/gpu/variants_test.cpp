// Every family and store with every epilogue, type and alignment, and with plans that the cost model would not choose:
// small convolutions, all outputs compared.
#include <gtest/gtest.h>

#include <set>

#include "gpu/gpu.h"
#include "support/case_lists.h"

namespace jitconv::test {
namespace {

using Variants = GpuTest;

void expect_every_family(const Report::Category& counts, const Target& target) {
  std::set<codegen::Family> families;
  for (const FamilyCase& one : family_cases(target)) families.insert(one.family);
  EXPECT_EQ(counts.families.size(), families.size());
  EXPECT_EQ(counts.failed, 0);
}

TEST_F(Variants, EveryEpilogue) {
  const std::vector<Case> cases = epilogue_cases(target());
  std::size_t expected = 0;
  for (const FamilyCase& one : family_cases(target())) expected += types_of(one).size() * (one.adds_residual ? 13 : 12);
  ASSERT_EQ(cases.size(), expected);
  expect_every_family(run_cases(device(), "epilogues", cases), target());
}

TEST_F(Variants, EveryAlignment) {
  expect_every_family(run_cases(device(), "alignments", alignment_cases(target())), target());
}

TEST_F(Variants, ManyCandidates) {
  const std::vector<Case> cases = candidate_cases(target(), /*first=*/25, /*spread=*/8);
  ASSERT_GE(cases.size(), 250u);
  expect_every_family(run_cases(device(), "candidates", cases), target());
}

TEST_F(Variants, EveryPathOfTensorCores) {
  const std::vector<Case> cases = wgmma_cases(target(), /*spread=*/7);
  if (cases.empty()) GTEST_SKIP() << "no wgmma family for " << target().arch();
  const Report::Category counts = run_cases(device(), "tensor cores", cases);
  EXPECT_EQ(counts.kernels, static_cast<std::int64_t>(cases.size()));
  EXPECT_EQ(counts.failed, 0);
}

}  // namespace
}  // namespace jitconv::test
