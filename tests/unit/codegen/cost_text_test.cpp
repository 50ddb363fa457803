// How modelled times are printed.
#include "codegen/cost_text.h"

#include <gtest/gtest.h>

namespace jitconv::codegen {
namespace {

TEST(CostText, ChoosesTheUnitThatNeedsNoExponent) {
  EXPECT_EQ(cost_text(10'600'000'000), "10.6 ms");
  EXPECT_EQ(cost_text(820'000'000), "820 us");
  EXPECT_EQ(cost_text(1'500'000), "1.5 us");
  EXPECT_EQ(cost_text(40'000), "0.04 us");
  EXPECT_EQ(cost_text(0), "0 us");
  EXPECT_EQ(cost_text(2'340'000'000'000), "2.34 s");
  EXPECT_EQ(cost_text(123'400'000'000'000'000), "123400 s");
}

TEST(CostText, RoundsIntoTheNextUnit) {
  EXPECT_EQ(cost_text(999'400'000), "999 us");
  EXPECT_EQ(cost_text(999'600'000), "1 ms");
  EXPECT_EQ(cost_text(999'600'000'000), "1 s");
}

}  // namespace
}  // namespace jitconv::codegen
