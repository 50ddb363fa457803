// The table of families: every row has what its kind needs, and is the row of its tiling.
#include "codegen/families.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "codegen/plan.h"

namespace jitconv::codegen {
namespace {

constexpr Family kPasses[] = {Family::activation_gradient, Family::bias_gradient,
                              Family::find_weight_range,   Family::pack_weights,
                              Family::transpose_weights,   Family::find_input_range,
                              Family::transpose_input,     Family::gather_patches,
                              Family::pack_pixels,         Family::reduce};

std::vector<Family> all_families() {
  std::vector<Family> all;
  for (std::size_t i = 0; i < std::variant_size_v<Tiling>; ++i) all.push_back(static_cast<Family>(i));
  return all;
}

std::vector<Family> convolving_families() {
  const std::span<const Family> competing = competing_families();
  std::vector<Family> all(competing.begin(), competing.end());
  all.push_back(kLastResort);
  return all;
}

TEST(Families, HaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  for (const Family family : all_families()) {
    EXPECT_FALSE(to_string(family).empty());
    EXPECT_EQ(to_string(family), functions_of(family).name);
    // It is a part of kernels' names, and passes' namespaces.
    EXPECT_EQ(to_string(family).find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), std::string_view::npos);
    names.insert(to_string(family));
  }
  EXPECT_EQ(names.size(), all_families().size());
}

TEST(Families, ConvolveArePassesOrAreNone) {
  std::vector<Family> all = convolving_families();
  all.insert(all.end(), std::begin(kPasses), std::end(kPasses));
  all.push_back(Family::none);
  std::ranges::sort(all);
  EXPECT_EQ(all, all_families());
}

TEST(Families, ThatConvolveHaveWhatThePlannerAsks) {
  for (const Family family : convolving_families()) {
    const FamilyFunctions& functions = functions_of(family);
    EXPECT_NE(functions.enumerate, nullptr) << functions.name;
    EXPECT_NE(functions.emit, nullptr) << functions.name;
    EXPECT_NE(functions.describe, nullptr) << functions.name;
    // Only of tensor cores a compiler may spoil the kernel, and is asked by bodies whether it does.
    EXPECT_EQ(functions.body != nullptr, functions.uses_tensor_cores) << functions.name;
    EXPECT_NE(functions.multiply_adds, nullptr) << functions.name;
    EXPECT_EQ(functions.output_tiles != nullptr, !functions.name.starts_with("wgrad")) << functions.name;
    // The kernels of tensor cores have bounds of their own, see their candidates.
    EXPECT_EQ(functions.needs_wide_index == nullptr, functions.uses_tensor_cores) << functions.name;
  }
}

TEST(Families, ThatArePassesHaveTextsAndNoCandidates) {
  for (const Family family : kPasses) {
    const FamilyFunctions& functions = functions_of(family);
    EXPECT_EQ(functions.enumerate, nullptr) << functions.name;
    EXPECT_EQ(functions.add_passes, nullptr) << functions.name;
    EXPECT_EQ(functions.multiply_adds, nullptr) << functions.name;
    EXPECT_EQ(functions.output_tiles, nullptr) << functions.name;
    EXPECT_FALSE(functions.uses_tensor_cores) << functions.name;
    EXPECT_NE(functions.emit, nullptr) << functions.name;
    EXPECT_NE(functions.describe, nullptr) << functions.name;
  }
  EXPECT_EQ(functions_of(Family::none).emit, nullptr);
  EXPECT_EQ(functions_of(Family::none).enumerate, nullptr);
}

TEST(Families, ThatCompeteAreNamedOnce) {
  const std::span<const Family> families = competing_families();
  EXPECT_EQ(std::set<Family>(families.begin(), families.end()).size(), families.size());
  EXPECT_EQ(std::ranges::count(families, kLastResort), 0) << "it is asked if nothing else can";
}

TEST(Families, UseTensorCoresOrDoNot) {
  for (const Family family : all_families())
    EXPECT_EQ(uses_tensor_cores(family), family == Family::pointwise || family == Family::wgmma ||
                                             family == Family::wgmma_rows || family == Family::wgrad_wgmma)
        << to_string(family);
}

TEST(Families, SayWhetherTheySplitOperands) {
  for (const Family family : all_families())
    EXPECT_EQ(functions_of(family).split_products != nullptr, family == Family::wgmma || family == Family::wgrad_wgmma)
        << to_string(family);
}

TEST(Families, PriceTheWeightsThatTheyNeedDense) {
  for (const Family family : all_families()) {
    const FamilyFunctions& functions = functions_of(family);
    EXPECT_FALSE(functions.prices_packing && functions.reads_any_weight) << functions.name;
    EXPECT_EQ(functions.prices_packing, family == Family::wgmma || family == Family::wgmma_rows) << functions.name;
  }
  // The planner lets it read the weights as they are.
  EXPECT_TRUE(functions_of(Family::pack_weights).reads_any_weight);
  EXPECT_FALSE(functions_of(Family::transpose_input).reads_any_weight);
}

TEST(Families, ATilingIsOfItsFamily) {
  EXPECT_EQ(family_of(Tiling()), Family::none);
  EXPECT_EQ(family_of(PointwiseTiling()), Family::pointwise);
  EXPECT_EQ(family_of(WgmmaTiling()), Family::wgmma);
  EXPECT_EQ(family_of(WgmmaRowsTiling()), Family::wgmma_rows);
  EXPECT_EQ(family_of(DepthwiseTiling()), Family::depthwise);
  EXPECT_EQ(family_of(DepthwiseNhwcTiling()), Family::depthwise_nhwc);
  EXPECT_EQ(family_of(DepthwisePlanesTiling()), Family::depthwise_planes);
  EXPECT_EQ(family_of(DirectTiling()), Family::direct);
  EXPECT_EQ(family_of(FallbackTiling()), Family::fallback);
  EXPECT_EQ(family_of(WgradDepthwiseTiling()), Family::wgrad_depthwise);
  EXPECT_EQ(family_of(WgradTiling()), Family::wgrad);
  EXPECT_EQ(family_of(ActivationGradientTiling()), Family::activation_gradient);
  EXPECT_EQ(family_of(BiasGradientTiling()), Family::bias_gradient);
  EXPECT_EQ(family_of(PackWeightsTiling()), Family::pack_weights);
  EXPECT_EQ(family_of(TransposeWeightsTiling()), Family::transpose_weights);
  EXPECT_EQ(family_of(TransposeInputTiling()), Family::transpose_input);
  EXPECT_EQ(family_of(GatherPatchesTiling()), Family::gather_patches);
  EXPECT_EQ(family_of(ReduceTiling()), Family::reduce);
}

TEST(Families, CandidatesAreOfTheirFamilyAndPlansOfThem) {
  const Target target = parse_target("sm_90a");
  for (const auto& [family, text] :
       {std::pair{Family::pointwise, "input=8,64,56,56 weight=64,64,1,1 math=tf32"},
        std::pair{Family::wgmma, "input=8,64,56,56 weight=64,64,3,3 math=tf32"},
        std::pair{Family::wgmma_rows, "input=8,64,56,56 weight=16,64,3,3 math=tf32"},
        std::pair{Family::depthwise, "input=8,64,56,56 weight=64,1,3,3 groups=64"},
        std::pair{Family::depthwise_nhwc, "input=8,64,56,56 weight=64,1,3,3 groups=64 layout=nhwc"},
        std::pair{Family::depthwise_planes, "input=8,64,14,14 weight=64,1,3,3 groups=64"},
        std::pair{Family::direct, "input=8,64,56,56 weight=64,64,3,3"},
        std::pair{Family::wgrad_depthwise,
                  "input=8,64,56,56 weight=64,1,3,3 groups=64 "
                  "operation=weight_gradient"},
        std::pair{Family::wgrad_wgmma,
                  "input=8,64,56,56 weight=64,64,3,3 math=tf32 "
                  "operation=weight_gradient"},
        std::pair{Family::wgrad,
                  "input=8,64,56,56 weight=64,64,3,3 "
                  "operation=weight_gradient"},
        std::pair{Family::fallback, "input=8,64,56,56 weight=64,64,3,3"}}) {
    const ConvSpec spec = canonical(parse_spec(text));
    std::string why;
    const std::vector<Candidate> all = candidates_of(family, lower(spec), target, why);
    ASSERT_FALSE(all.empty()) << text << ": " << why;
    for (const Candidate& candidate : all) ASSERT_EQ(family_of(candidate.tiling), family);
    const ConvPlan plan = plan_with(spec, target, all.front());
    EXPECT_EQ(plan.family(), family);
    EXPECT_EQ(plan.cost, all.front().cost);
    const KernelPlan& convolution = plan.convolution();
    EXPECT_EQ(convolution.tiling, all.front().tiling);
    EXPECT_GE(functions_of(family).multiply_adds(convolution), static_cast<std::int64_t>(work(spec).flop / 2)) << text;
    EXPECT_FALSE(functions_of(family).describe(convolution).empty());
  }
}

// A family that cannot compute a problem says why, and one that can has nothing to say. What sums over pixels is for
// families of its own, which have nothing for sums over taps.
TEST(Families, SayWhyTheyHaveNoCandidates) {
  const Target target = parse_target("sm_90a");
  const std::string shape = "input=8,64,56,56 weight=64,64,3,3 padding=1 math=tf32 ";
  const Problem taps = lower(canonical(parse_spec(shape)));
  const Problem pixels = lower(canonical(parse_spec(shape + "operation=weight_gradient")));
  for (const Family family : convolving_families()) {
    std::string why;
    const bool sums_pixels = !candidates_of(family, pixels, target, why).empty() || family == Family::wgrad_depthwise;
    if (sums_pixels) {
      EXPECT_EQ(why, family == Family::wgrad_depthwise ? "64 input channels per group, not 1" : "");
      EXPECT_TRUE(candidates_of(family, taps, target, why).empty()) << to_string(family);
      EXPECT_EQ(why, "the sums run over taps") << to_string(family);
    } else {
      EXPECT_EQ(why, "the sums run over pixels") << to_string(family);
    }
  }
}

}  // namespace
}  // namespace jitconv::codegen
