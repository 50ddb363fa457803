// Weight gradients with one input channel per group, computed by plans of the wgrad_depthwise family that cut the
// pixels in different ways.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "host/quick/quick.h"

namespace jitconv::test {
namespace {

using codegen::WgradDepthwiseTiling;

std::string kind(const codegen::ConvPlan& plan) {
  const auto* const tiling = plan.tiling<WgradDepthwiseTiling>();
  if (tiling == nullptr) return {};
  const codegen::Problem& problem = plan.convolution().problem;
  return fmt::format("{} columns{}{}{}{}{}{}", tiling->thread_q, tiling->slots > 1 ? ", slots" : "",
                     tiling->turns > 1 ? ", turns" : "", tiling->tiles_q(problem) > 1 ? ", parts" : "",
                     tiling->bands(problem) > 1 ? ", bands" : "", tiling->periods > 1 ? ", periods" : "",
                     tiling->unroll_copies ? ", unrolled" : "");
}

void run_weight_gradients(const std::string& name, std::vector<std::string> specs) {
  for (std::string& spec : specs) spec += " operation=weight_gradient";
  run(name, Kinds{.kind = kind,
                  .parts = {"4 columns", "8 columns", "slots", "turns", "parts", "bands", "periods", "unrolled"},
                  .specs = std::move(specs)});
}

TEST(DepthwiseWeightGradient, Planes) {
  run_weight_gradients("depthwise weight gradients, planes",
                       {
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
  run_weight_gradients("depthwise weight gradients, channels",
                       {
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
