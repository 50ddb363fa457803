// The passes that find ranges for pairs of fp16 numbers: what they read, all of it, and where plans put them.
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "codegen/find_range/pass.h"
#include "codegen/plan.h"
#include "codegen/wgmma/geometry.h"

namespace jitconv {
namespace {

using codegen::ConvPlan;
using codegen::Family;
using codegen::FindInputRangeTiling;
using codegen::FindWeightRangeTiling;
using codegen::Tensor;

/// The cheapest plan that multiplies pairs.
ConvPlan plan_of_pairs(const std::string& spec, bool split_before) {
  for (ConvPlan& plan : codegen::enumerate_plans(parse_spec(spec + " math=fp16x3"), parse_target("sm_90a"), SIZE_MAX)) {
    const auto* const tiling = plan.tiling<codegen::WgmmaTiling>();
    if (tiling != nullptr && tiling->f16_pairs && tiling->splits_input() == split_before) return std::move(plan);
  }
  throw std::logic_error("no plan of pairs for " + spec);
}

template <typename RangeTiling>
const codegen::KernelPlan& pass_of(const ConvPlan& plan) {
  for (const codegen::KernelPlan& kernel : plan.kernels)
    if (std::holds_alternative<RangeTiling>(kernel.tiling)) return kernel;
  throw std::logic_error("a plan without the pass");
}

TEST(FindRange, ReadsAllOfBothTensors) {
  for (const auto& [spec, x, w, input] :
       {std::tuple{"input=2,96,10,12 weight=63,32,3,3 groups=3 padding=1", 2 * 96 * 120, 63 * 32 * 9, Tensor::x},
        std::tuple{"input=2,48,17,23 weight=44,48,3,3 layout=nhwc", 2 * 48 * 17 * 23, 44 * 48 * 9, Tensor::x},
        std::tuple{"operation=data_gradient input=2,32,14,16 weight=48,32,3,3 stride=2 padding=1", 2 * 48 * 7 * 8,
                   48 * 32 * 9, Tensor::dy}}) {
    const ConvPlan plan = plan_of_pairs(spec, false);
    const auto& of_w = std::get<FindWeightRangeTiling>(pass_of<FindWeightRangeTiling>(plan).tiling);
    const auto& of_x = std::get<FindInputRangeTiling>(pass_of<FindInputRangeTiling>(plan).tiling);
    EXPECT_EQ(of_w.elements, w) << spec;
    EXPECT_EQ(of_x.elements, x) << spec;
    EXPECT_EQ(of_w.source, Tensor::w) << spec;
    EXPECT_EQ(of_x.source, input) << spec;
    EXPECT_EQ(plan.convolution().problem.input.range, of_x.region) << spec;
    EXPECT_EQ(of_w.region, plan.convolution().problem.weight.tensor) << spec;
    // Where the convolution looks for it.
    const codegen::WgmmaGeometry geometry(plan.convolution().problem, *plan.tiling<codegen::WgmmaTiling>());
    EXPECT_EQ(of_w.range_row, geometry.packed_rows()) << spec;
  }
}

TEST(FindRange, StandsBeforeTheKernelsThatSplit) {
  const ConvPlan plan = plan_of_pairs("input=2,32,17,23 weight=40,32,3,3 padding=1", true);
  std::vector<Family> order;
  for (const codegen::KernelPlan& kernel : plan.kernels) order.push_back(kernel.family());
  EXPECT_EQ(order, (std::vector{Family::find_weight_range, Family::pack_weights, Family::find_input_range,
                                Family::transpose_input, Family::wgmma}));
  EXPECT_FALSE(plan.kernels.front().starts_early);
  EXPECT_TRUE(std::all_of(plan.kernels.begin() + 1, plan.kernels.end(),
                          [](const codegen::KernelPlan& kernel) { return kernel.starts_early; }));
}

TEST(FindRange, CountsMoreVectorsThanAnInt) {
  codegen::KernelPlan pass;
  pass.tiling = FindInputRangeTiling{{.source = Tensor::x, .elements = (std::int64_t{1} << 33) + 7}};
  const std::string text = codegen::find_range::emit_of_input(pass, "kernel").text;
  EXPECT_NE(text.find("constexpr long long kVectors = 2147483649LL;"), std::string::npos) << text;
  EXPECT_NE(text.find("constexpr int kRest = 3;"), std::string::npos) << text;
}

}  // namespace
}  // namespace jitconv
