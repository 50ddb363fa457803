// Weight gradients of 16-bit NHWC tensors by plans of the wgrad_wgmma family whose operands are boxes (MN-major), which
// cut channels, taps and pixels in different ways. Small integers, so that every sum is exact.
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

using codegen::WgradWgmmaTiling;

/// What the generator makes a difference of.
std::string kind(const ConvPlan& plan) {
  const auto& tiling = *plan.tiling<WgradWgmmaTiling>();
  const codegen::WgradGeometry geometry(plan.convolution().problem, tiling);
  return fmt::format("{} consumers' channels, {}, rows of {}, {} parts, {} phases{}{}{}{}", tiling.consumers_k,
                     tiling.joins_taps ? "joined" : "apart", geometry.row_bytes(), geometry.parts(),
                     geometry.box_phases().size(), geometry.pieces() > 1 ? ", pieces" : "",
                     tiling.block_r > 1 ? ", shared rows" : "", geometry.tiles_s() > 1 ? ", tiles of s" : "",
                     tiling.splits > 1 ? ", splits" : "");
}

/// The cheapest plan of boxes, and two of the other kinds, whose turn it is.
std::vector<ConvPlan> plans_of(const ConvSpec& spec, std::size_t turn) {
  std::vector<ConvPlan> chosen;
  std::map<std::string, ConvPlan> kinds;
  for (ConvPlan& plan : codegen::enumerate_plans(spec, Target::host(parse_target("sm_90a")), SIZE_MAX)) {
    const auto* const tiling = plan.tiling<WgradWgmmaTiling>();
    if (tiling == nullptr || !tiling->takes_boxes()) continue;
    if (chosen.empty()) chosen.push_back(plan);
    kinds.try_emplace(kind(plan), std::move(plan));
  }
  if (chosen.empty()) return {};
  kinds.erase(kind(chosen.front()));
  for (std::size_t i = 0; i < std::min<std::size_t>(kinds.size(), 2); ++i)
    chosen.push_back(std::next(kinds.begin(), static_cast<long>((turn + i * 3) % kinds.size()))->second);
  return chosen;
}

TEST(NhwcWeightGradient, IsExact) {
  const FreshCache cache("nhwc-weight-gradients");
  tools::HostDevice device{Target::host()};
  std::set<std::string> kinds;
  std::size_t turn = 0;
  for (const char* const text : {
           "input=2,64,9,20 weight=128,64,3,3 padding=1 bias",
           "input=1,16,11,40 weight=64,16,3,3 padding=1 bias dtype=f16",
           "input=2,32,14,33 weight=64,32,5,9 padding=2,4 dilation=2,3 bias",
           "input=1,64,12,18 weight=128,64,5,7 bias",
           // Channels that fill neither a row nor a tile.
           "input=2,24,7,7 weight=40,24,3,3 padding=1",
           "input=2,8,7,9 weight=72,8,3,2 bias dtype=f16",
           // Phases of the columns.
           "input=2,64,10,20 weight=64,64,3,3 padding=1 stride=2 bias",
           "input=2,128,10,20 weight=128,128,3,3 padding=1 stride=2,4 dilation=1,3 bias",
           "input=3,128,6,16 weight=200,128,1,1 bias dtype=f16",
           "input=3,256,6,16 weight=128,256,1,1 stride=2",
           "input=2,64,8,20 weight=64,32,3,3 padding=1 groups=2 bias",
           // A row of x that reaches further than a box, but for few pixels of dy.
           "input=1,16,4,250 weight=64,16,1,2 padding=0,60 dilation=1,190",
           "input=1,72,1,300 weight=64,72,1,5 padding=0,2 bias",
           "input=1,16,90,140 weight=64,16,3,1 padding=1,0 bias output_dtype=f32",
           "input=2,48,9,50 weight=64,48,3,3 padding=0,2,1,0 output_dtype=f32",
       }) {
    std::string words = text;
    if (words.find("dtype=f16") == words.npos) words += " dtype=bf16";
    const ConvSpec spec = parse_spec(words + " layout=nhwc operation=weight_gradient");
    const Gradient expected(spec);
    const std::vector<ConvPlan> plans = plans_of(spec, turn += 5);
    EXPECT_FALSE(plans.empty()) << text;
    for (const ConvPlan& plan : plans) {
      EXPECT_EQ(fault(device, plan, expected), "") << text << ": " << kind(plan);
      kinds.insert(kind(plan));
    }
  }
  for (const char* part : {"1 consumers", "2 consumers", "joined", "apart", "rows of 32", "rows of 64", "rows of 128",
                           "2 parts", "2 phases", "shared rows", "tiles of s", "splits"})
    EXPECT_TRUE(std::ranges::any_of(kinds, [part](const std::string& one) { return one.find(part) != one.npos; }))
        << "no plan has " << part;
}

}  // namespace
}  // namespace jitconv::test
