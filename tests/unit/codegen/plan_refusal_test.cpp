// What make_plan() says of valid specs that no kernel computes.
#include <gtest/gtest.h>

#include <string>

#include "codegen/plan.h"
#include "jitconv/error.h"

namespace jitconv::codegen {
namespace {

/// What make_plan() says of a spec that no kernel computes.
std::string refusal_of(const char* spec, const std::string& field) {
  try {
    make_plan(parse_spec(spec), parse_target("sm_90a"));
  } catch (const SpecError& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_EQ(error.field(), field);
    return error.what();
  }
  return "accepted";
}

TEST(PlanRefusal, NamesTheOperationAndTheLimits) {
  const std::string gradient =
      refusal_of("input=2,1,536870911,536870911 weight=1,1,3,3 operation=weight_gradient", "operation");
  EXPECT_EQ(gradient.find("operation is weight_gradient, and no kernel computes it for this convolution: "), 0u);
  for (const char* limit : {"wgrad_depthwise: ", "wgrad: more than 2^31 - 1 thread blocks"})
    EXPECT_NE(gradient.find(limit), std::string::npos) << gradient;
  EXPECT_EQ(gradient.find("the sums run over pixels"), std::string::npos) << gradient;
}

TEST(PlanRefusal, NamesTheOutputsAndTheirBlocks) {
  EXPECT_EQ(refusal_of("input=1,1,536870911,536870911 weight=2,1,3,3", "input"),
            "input makes 1x2x536870909x536870909 outputs, which take 1125899894259713 thread blocks, must be at most "
            "2^31 - 1");
}

}  // namespace
}  // namespace jitconv::codegen
