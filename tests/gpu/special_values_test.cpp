// NaN and infinity in x and bias, by kernels of every family: support/special_values.h says what is checked.
#include "support/special_values.h"

#include <gtest/gtest.h>

#include "gpu/gpu.h"
#include "runtime/compile.h"

namespace jitconv::test {
namespace {

class SpecialValues : public GpuTest {};

TEST_F(SpecialValues, ReachOnlyTheOutputsThatReadThem) {
  Report::Category counts;
  std::int64_t planned = 0;
  for (const FamilyCase& family : family_cases(target())) {
    for (const DataType type : types_of(family)) {
      ++planned;
      const SpecialValuesCase one = special_values_case(family, type, target());
      EXPECT_EQ(special_values_fault(device(), runtime::compile_plan(one.plan), counts), "") << one.name;
    }
  }
  EXPECT_EQ(counts.kernels, planned);
  Report::get().add("special values", counts);
}

}  // namespace
}  // namespace jitconv::test
