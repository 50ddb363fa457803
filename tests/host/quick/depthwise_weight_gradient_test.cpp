// Weight gradients with one input channel per group, computed by plans of the wgrad_depthwise family that cut the
// pixels in different ways. Small integers, so that every sum is exact.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "codegen/plan.h"
#include "host/quick/weight_gradient.h"
#include "support/fresh_cache.h"

namespace jitconv::test {
namespace {

using codegen::WgradDepthwiseTiling;

/// What a template or the generator makes a difference of.
std::string kind(const ConvPlan& plan) {
  const auto& tiling = *plan.tiling<WgradDepthwiseTiling>();
  const codegen::Problem& problem = plan.convolution().problem;
  return fmt::format("{} columns{}{}{}{}{}{}", tiling.thread_q, tiling.slots > 1 ? ", slots" : "",
                     tiling.turns > 1 ? ", turns" : "", tiling.tiles_q(problem) > 1 ? ", parts" : "",
                     tiling.bands(problem) > 1 ? ", bands" : "", tiling.periods > 1 ? ", periods" : "",
                     tiling.unroll_copies ? ", unrolled" : "");
}

/// The cheapest plan, and of the other kinds the one whose turn it is.
std::vector<ConvPlan> plans_of(const ConvSpec& spec, std::size_t turn) {
  std::vector<ConvPlan> chosen;
  std::map<std::string, ConvPlan> kinds;
  for (ConvPlan& plan : codegen::enumerate_plans(spec, Target::host(parse_target("sm_90a")), SIZE_MAX)) {
    if (plan.family() != codegen::Family::wgrad_depthwise) continue;
    if (chosen.empty()) chosen.push_back(plan);
    kinds.try_emplace(kind(plan), std::move(plan));
  }
  if (chosen.empty()) return {};
  kinds.erase(kind(chosen.front()));
  if (!kinds.empty()) chosen.push_back(std::next(kinds.begin(), static_cast<long>(turn % kinds.size()))->second);
  return chosen;
}

void run(const std::vector<std::string>& specs) {
  const FreshCache cache("depthwise-weight-gradients");
  tools::HostDevice device{Target::host()};
  std::set<std::string> kinds;
  std::size_t turn = 0;
  for (const std::string& text : specs) {
    const ConvSpec spec = parse_spec(text + " operation=weight_gradient");
    const Gradient expected(spec);
    const std::vector<ConvPlan> plans = plans_of(spec, turn += 3);
    EXPECT_FALSE(plans.empty()) << text;
    for (const ConvPlan& plan : plans) {
      EXPECT_EQ(fault(device, plan, expected), "") << text;
      kinds.insert(kind(plan));
    }
  }
  for (const char* part : {"4 columns", "8 columns", "slots", "turns", "parts", "bands", "periods", "unrolled"})
    EXPECT_TRUE(std::ranges::any_of(kinds, [part](const std::string& one) { return one.find(part) != one.npos; }))
        << "no plan has " << part;
}

TEST(DepthwiseWeightGradient, Planes) {
  run({
      "input=2,3,12,48 weight=3,1,3,3 groups=3 padding=1 bias",
      "input=3,2,13,50 weight=4,1,3,3 groups=2 padding=1 stride=2 bias",
      "input=9,2,7,7 weight=2,1,3,3 groups=2 padding=1",
      "input=1,1,5,300 weight=2,1,2,3 padding=1,0",
      // Rows in turn, with a common divisor of stride and dilation and without.
      "input=1,2,23,21 weight=2,1,5,3 groups=2 dilation=2,3 padding=1",
      "input=1,2,25,24 weight=2,1,3,3 groups=2 padding=6 stride=4,1 dilation=6,2 bias",
      "input=1,2,5,4 weight=2,1,3,3 groups=2 padding=6 stride=5",
      // Filter rows in tiles, of which the last is not full.
      "input=1,2,24,19 weight=2,1,11,11 groups=2 padding=5 bias",
      "input=2,2,12,44 weight=2,1,3,3 groups=2 padding=1 bias dtype=bf16",
      "input=1,2,9,13 weight=4,1,3,3 groups=2 padding=1 stride=1,2 dtype=bf16",
  });
}

TEST(DepthwiseWeightGradient, Channels) {
  run({
      "input=2,8,12,90 weight=8,1,3,3 groups=8 padding=1 bias layout=nhwc",
      "input=1,5,11,13 weight=15,1,3,2 groups=5 padding=1 stride=2 layout=nhwc",
      "input=5,36,7,7 weight=36,1,3,3 groups=36 padding=1 bias layout=nhwc",
      "input=1,4,14,9 weight=8,1,9,9 groups=4 padding=4 layout=nhwc bias",
      "input=1,8,13,13 weight=8,1,3,3 groups=8 padding=2 dilation=2 layout=nhwc dtype=bf16",
      "input=2,3,8,9 weight=3,1,3,3 groups=3 padding=1 layout=nhwc dtype=bf16 bias",
  });
}

}  // namespace
}  // namespace jitconv::test
