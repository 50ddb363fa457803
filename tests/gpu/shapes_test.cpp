// The bulk of the suite: every documented configuration at full size, and more than 800 rows of tests/shapes in every
// type and layout, with integer data bit for bit and real data within the derived bound.
#include <gtest/gtest.h>

#include <map>

#include "gpu/gpu.h"
#include "support/case_lists.h"
#include "tools/documented.h"

namespace jitconv::test {
namespace {

constexpr std::int64_t kMostBytes = std::int64_t{2} << 30;
constexpr std::size_t kFewestRows = 800;

using Documented = GpuTest;
using Shapes = GpuTest;

/// Nothing passes by not having been run.
void expect_all_run(const Report::Category& counts, const std::vector<Case>& cases) {
  std::size_t launches = 0;
  for (const Case& one : cases) launches += one.kinds.size();
  EXPECT_EQ(counts.kernels, static_cast<std::int64_t>(cases.size()));
  EXPECT_EQ(counts.launches, static_cast<std::int64_t>(launches));
  EXPECT_GE(counts.outputs, counts.launches);
  EXPECT_EQ(counts.failed, 0);
}

TEST_F(Documented, FullSize) {
  const std::vector<Case> cases = documented_cases();
  ASSERT_EQ(cases.size(), tools::documented_configurations().size());
  expect_all_run(run_cases(device(), "documented", cases), cases);
}

TEST_F(Shapes, Float32) {
  const std::vector<Case> cases = shape_cases(kMostBytes);
  ASSERT_GE(cases.size(), kFewestRows);
  const Report::Category counts = run_cases(device(), "shapes, f32 nchw", cases);
  expect_all_run(counts, cases);
  EXPECT_GE(counts.families.count("direct"), 1u);
  EXPECT_GE(counts.families.count("depthwise"), 1u);
}

TEST_F(Shapes, SixteenBits) {
  const std::vector<Case> cases = with_16_bit_types(shape_cases(kMostBytes));
  ASSERT_GE(cases.size(), kFewestRows);
  expect_all_run(run_cases(device(), "shapes, 16 bits", cases), cases);
}

TEST_F(Shapes, ChannelsLast) {
  const std::vector<Case> cases = with_nhwc_layouts(shape_cases(kMostBytes));
  std::map<std::string, int> combinations;
  for (const Case& one : cases)
    ++combinations[std::string(to_string(one.spec.dtype)) + " " + std::string(to_string(one.spec.input_layout)) + " " +
                   std::string(to_string(one.spec.output_layout))];
  ASSERT_EQ(combinations.size(), 9u);
  for (const auto& [name, count] : combinations) ASSERT_GE(count, 100) << name;
  expect_all_run(run_cases(device(), "shapes, nhwc", cases), cases);
}

}  // namespace
}  // namespace jitconv::test
