// The order of the wgmma family's taps where it is not the filter's: pixels of a step ascend in shared memory.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "codegen/source.h"
#include "codegen/text/emitter.h"
#include "unit/codegen/wgmma_candidates.h"

namespace jitconv::codegen {
namespace {

/// The text of the family's cheapest plan.
std::string text_of_first(const char* spec) {
  return generate(test::wgmma_candidates(parse_spec(spec)).front().plan).text;
}

TEST(WgmmaTapOrder, IsPrintedWhereItIsNotTheFilters) {
  for (const auto& [spec, order] :
       {std::pair{"input=4,3,99,99 weight=96,3,11,11 stride=4 padding=2 math=tf32",
                  "0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, kS"},
        {"input=4,16,99,99 weight=96,16,5,5 stride=2 padding=2 math=tf32", "0, 2, 4, 1, 3"}}) {
    const std::string text = text_of_first(spec);
    EXPECT_NE(text.find(fmt::format("kTapOrder[] = {{{}}};", order)), std::string::npos) << spec;
    EXPECT_NE(text.find("s = kTapOrder[tap];"), std::string::npos) << spec;
  }
  for (const char* in_order : {"input=4,16,99,99 weight=96,16,5,5 padding=2 math=tf32",
                               "input=4,16,99,99 weight=96,16,3,3 stride=2 dilation=2 math=tf32"})
    EXPECT_EQ(text_of_first(in_order).find("kTapOrder"), std::string::npos) << in_order;
}

/// The text of all kernels, one after the other, before lines are wrapped.
std::string text_of_kernels(const ConvPlan& plan) {
  std::string text;
  for (const KernelPlan& kernel : plan.kernels) text += functions_of(kernel.family()).emit(kernel, "kernel").text;
  return text;
}

// Where rows of positions are shorter than a filter row reaches, the last tap of one lies behind the first of the next.
TEST(WgmmaTapOrder, UnitsAscendWhereAFilterRowReachesPastTheNextRow) {
  for (const char* narrow : {"input=3,8,33,1 weight=3,8,5,5 padding=2 dtype=f16 math=tf32",
                             "input=2,3,300,1 weight=20,3,5,5 padding=2 math=tf32",
                             "input=2,8,300,2 weight=16,8,2,9 padding=1,4 dtype=bf16 math=tf32",
                             "input=2,4,300,2 weight=16,4,3,7 padding=1,3 math=tf32 input_layout=nhwc"}) {
    int out_of_order = 0;
    for (const ConvPlan& plan : enumerate_plans(parse_spec(narrow), parse_target("sm_90a"), SIZE_MAX)) {
      const auto* tiling = plan.tiling<WgmmaTiling>();
      if (tiling == nullptr || tiling->pipeline.slices > 1 || tiling->pipeline.filter_rows == 1) continue;
      const std::string text = text_of_kernels(plan);
      ASSERT_EQ(text.find(", 16 * -"), std::string::npos) << narrow << ": a right half before its left half";
      if (tiling->folds_columns()) continue;  // whose taps may be in order
      ASSERT_NE(text.find("kTapOrder[] = {0, 1, "), std::string::npos) << narrow;
      ASSERT_NE(text.find("const int tap = kTapOrder[row], r = tap / kS, s = tap % kS;"), std::string::npos) << narrow;
      ++out_of_order;
    }
    EXPECT_GT(out_of_order, 0) << narrow;
  }
}

}  // namespace
}  // namespace jitconv::codegen
