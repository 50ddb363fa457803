// The generator of random cases and the shrinking of failing ones. No kernel runs here.
#include "fuzz/edge_specs.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <span>

#include "codegen/plan.h"
#include "support/random_specs.h"
#include "tools/check/positions.h"

namespace jitconv::test {
namespace {

constexpr std::int64_t kProducts = 2'000'000;

TEST(EdgeSpecs, AreValidAndKeepTheLimit) {
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
    const ConvSpec spec = edge_spec(seed, kProducts);
    ASSERT_NO_THROW(validate(spec)) << seed;
    ASSERT_GT(check::position_count(spec), 0) << seed;
    ASSERT_TRUE(products(spec) > 0 || spec.operation == Operation::weight_gradient) << seed;
    ASSERT_LE(products(spec), kProducts) << seed;
  }
}

TEST(EdgeSpecs, ASeedAlwaysGivesTheSame) {
  EXPECT_EQ(edge_spec(7, kProducts), edge_spec(7, kProducts));
  EXPECT_NE(edge_spec(7, kProducts), edge_spec(8, kProducts));
  const ConvSpec spec = edge_spec(5, kProducts);
  const Target target = parse_target("sm_90a");
  EXPECT_EQ(edge_plan(5, spec, target), edge_plan(5, spec, target));
}

/// What the edges are, counted over seeds; each must be met often, or faults that need two of them are met never.
TEST(EdgeSpecs, FavourTheEdges) {
  constexpr int kSeeds = 5000;
  int narrow = 0, filter_beyond_image = 0, grouped = 0, depthwise = 0, few_channels = 0, unaligned = 0, strided = 0,
      dilated = 0, large_filter = 0, asymmetric = 0, mixed_layouts = 0, strided_and_dilated = 0, cropped = 0,
      wider_results = 0, no_images = 0, activated = 0, multiplied_gradient = 0, strided_pointwise = 0;
  std::map<Operation, int> operations;
  std::set<std::tuple<DataType, Layout, Layout, MathMode>> kinds;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const ConvSpec s = edge_spec(seed, kProducts);
    narrow += std::min(s.input.h, s.input.w) <= 3;
    filter_beyond_image +=
        s.dilation.w * (s.weight.s - 1) + 1 > s.input.w || s.dilation.h * (s.weight.r - 1) + 1 > s.input.h;
    grouped += s.groups > 1 && s.weight.c > 1;
    depthwise += s.groups > 1 && s.weight.c == 1;
    few_channels += s.groups == 1 && s.weight.c <= 8;
    unaligned += s.alignment < 16;
    strided += s.stride != Size2(1);
    dilated += s.dilation != Size2(1);
    large_filter += std::max(s.weight.r, s.weight.s) > 11;
    asymmetric += s.padding.top != s.padding.bottom || s.padding.left != s.padding.right;
    mixed_layouts += s.input_layout != s.output_layout;
    const bool gradient = s.operation != Operation::forward;
    strided_and_dilated += gradient && ((s.stride.h > 1 && s.dilation.h > 1) || (s.stride.w > 1 && s.dilation.w > 1));
    cropped += gradient &&
               (s.padding.top > s.dilation.h * (s.weight.r - 1) || s.padding.left > s.dilation.w * (s.weight.s - 1));
    wider_results += output_type(s) != s.dtype;
    no_images += s.input.n == 0;
    multiplied_gradient +=
        s.operation == Operation::data_gradient && s.groups > 1 && s.weight.k == s.groups && s.weight.c > 1;
    strided_pointwise += gradient && s.weight.r * s.weight.s == 1 && s.stride != Size2(1);
    activated += s.dy_activation != Activation::none;
    kinds.emplace(s.dtype, s.input_layout, s.output_layout, s.math);
    ++operations[s.operation];
  }
  for (const int count :
       {narrow, filter_beyond_image, grouped, depthwise, few_channels, unaligned, strided, dilated, large_filter,
        asymmetric, mixed_layouts, strided_and_dilated, cropped, wider_results, activated})
    EXPECT_GT(count, kSeeds / 25);
  for (const int count : {no_images, multiplied_gradient, strided_pointwise}) EXPECT_GT(count, kSeeds / 250);
  for (const auto& [operation, count] : operations) EXPECT_GT(count, kSeeds / 4) << to_string(operation);
  EXPECT_EQ(operations.size(), 3u);
  EXPECT_EQ(kinds.size(), 3u * 2 * 2 * 4);
}

TEST(EdgeSpecs, ReachEveryFamily) {
  const std::span<const codegen::Family> competing = codegen::competing_families();
  std::set<codegen::Family> missing(competing.begin(), competing.end());
  missing.insert(codegen::Family::fallback);
  const Target target = parse_target("sm_90a");
  for (std::uint64_t seed = 0; seed < 3000 && !missing.empty(); ++seed)
    missing.erase(edge_plan(seed, edge_spec(seed, kProducts), target).family());
  for (const codegen::Family family : missing) ADD_FAILURE() << codegen::to_string(family);
}

TEST(EdgeSpecs, SimplerOnesAreValidAndSimpler) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const ConvSpec spec = edge_spec(seed, kProducts);
    for (const ConvSpec& simpler : simpler_specs(spec)) {
      ASSERT_NO_THROW(validate(simpler));
      ASSERT_NE(simpler, spec);
    }
  }
}

TEST(EdgeSpecs, ShrinkFindsTheSmallestThatFails) {
  // A fault of images narrower than the filter's reach that have three channels or more.
  const auto fails = [](const ConvSpec& spec) {
    return spec.weight.s > spec.input.w && spec.weight.c >= 3 && spec.dtype == DataType::f16 && spec.input.n > 0;
  };
  int shrunk = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const ConvSpec spec = edge_spec(seed, kProducts);
    if (!fails(spec)) continue;
    const ConvSpec smallest = shrink(spec, fails, 1000);
    ++shrunk;
    ASSERT_TRUE(smallest.weight == (WeightShape{1, 3, 1, 2}) && smallest.input == (TensorShape{1, 3, 1, 1}))
        << to_string(spec) << "\n"
        << to_string(smallest);
    ASSERT_EQ(smallest.epilogue.activation, Activation::none);
    ASSERT_EQ(smallest.groups, 1);
  }
  EXPECT_GT(shrunk, 50);
}

TEST(EdgeSpecs, ShrinkStopsAfterItsTries) {
  int tries = 0;
  shrink(
      edge_spec(1, kProducts),
      [&tries](const ConvSpec&) {
        ++tries;
        return true;
      },
      3);
  EXPECT_EQ(tries, 3);
}

}  // namespace
}  // namespace jitconv::test
