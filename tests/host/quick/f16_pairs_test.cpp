// Convolutions of floats as pairs of fp16 numbers, math fp16x3: how the pairs are made, in a pass before or by producer
// warps, and how weights of either direction are packed as such.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "host/quick/quick.h"

namespace jitconv::test {
namespace {

std::string pairs_kind(const codegen::ConvPlan& plan) {
  const auto* const tiling = plan.tiling<codegen::WgmmaTiling>();
  if (tiling == nullptr || !tiling->f16_pairs) return {};
  constexpr const char* kSchedules[] = {"cooperative", "pingpong", "sliced-K"};
  return fmt::format("{}, {} slices, {}{}{}{}",
                     tiling->splits_input()      ? "split before"
                     : tiling->converts_pixels() ? "converted"
                     : tiling->uses_im2col()     ? "split in place"
                                                 : "loaded",
                     tiling->pipeline.slices, kSchedules[static_cast<std::size_t>(tiling->schedule)],
                     tiling->keeps_weights() ? ", resident" : "", tiling->tile.images > 0 ? ", images" : "",
                     tiling->split_k > 1 ? ", split-K" : "");
}

TEST(F16Pairs, AreRight) {
  run("pairs", Kinds{.kind = pairs_kind,
                     .others = 1,
                     .parts = {"split before", "converted", "split in place", "loaded", "4 slices", "8 slices",
                               "cooperative", "pingpong", "sliced-K", "resident", "images", "split-K"},
                     .specs = {
                         "input=2,32,17,23 weight=40,32,3,3 padding=1 bias math=fp16x3",
                         "input=2,40,16,20 weight=137,40,3,2 padding=1,0 bias residual activation=relu math=fp16x3",
                         "input=2,70,9,12 weight=72,70,1,1 math=fp16x3",
                         "input=2,3,32,32 weight=72,3,8,8 stride=8 math=fp16x3",
                         "input=3,24,12,14 weight=40,24,3,3 stride=2 padding=1 math=fp16x3",
                         "input=2,96,10,12 weight=63,32,3,3 groups=3 padding=1 dilation=1,2 math=fp16x3",
                         "input=2,48,17,23 weight=44,48,3,3 padding=1,2,2,0 layout=nhwc math=fp16x3",
                         "input=2,20,12,15 weight=68,20,2,5 padding=2 bias output_layout=nhwc math=fp16x3",
                         "input=2,19,12,15 weight=36,19,3,3 layout=nhwc math=fp16x3",
                         "operation=data_gradient input=2,40,13,17 weight=32,40,3,3 padding=1 math=fp16x3",
                         "operation=data_gradient input=2,48,12,16 weight=64,48,3,3 padding=1 layout=nhwc math=fp16x3",
                         "operation=data_gradient input=2,32,14,16 weight=48,32,3,3 stride=2 padding=1 math=fp16x3",
                     }});
}

}  // namespace
}  // namespace jitconv::test
