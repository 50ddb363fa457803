// The depthwise family for NHWC tensors: every form of its templates, by plans that reach them.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>

#include "host/quick/quick.h"

namespace jitconv::test {
namespace {

using codegen::DepthwiseNhwcTiling;

Wanted nhwc(std::function<bool(const DepthwiseNhwcTiling&)> wanted) {
  return [wanted = std::move(wanted)](const codegen::ConvPlan& plan) {
    const auto* tiling = plan.tiling<DepthwiseNhwcTiling>();
    return tiling != nullptr && wanted(*tiling);
  };
}

const Wanted kAny = nhwc([](const DepthwiseNhwcTiling&) { return true; });
const Wanted kTwo = nhwc([](const DepthwiseNhwcTiling& tiling) { return tiling.vector == 2; });
const Wanted kFour = nhwc([](const DepthwiseNhwcTiling& tiling) { return tiling.vector == 4; });
const Wanted kEight = nhwc([](const DepthwiseNhwcTiling& tiling) { return tiling.vector == 8; });
const Wanted kRolledFilter = nhwc([](const DepthwiseNhwcTiling& tiling) { return !tiling.unroll_rows; });
const Wanted kRolledRows =
    nhwc([](const DepthwiseNhwcTiling& tiling) { return !tiling.unroll_rows && tiling.thread_p > 1; });
Wanted copies(DepthwiseNhwcTiling::Copy copy) {
  return nhwc([copy](const DepthwiseNhwcTiling& tiling) { return tiling.copy == copy; });
}
const Wanted kRegisters = copies(DepthwiseNhwcTiling::Copy::registers);
const Wanted kAsync = copies(DepthwiseNhwcTiling::Copy::async);
const Wanted kBox = copies(DepthwiseNhwcTiling::Copy::box);

TEST(DepthwiseNhwc, TypesAndVectors) {
  run("depthwise nhwc",
      {
          {"ragged everywhere", "input=2,20,13,35 weight=20,1,3,3 groups=20 padding=1,2,2,0 bias residual layout=nhwc",
           2, kFour},
          {"two channels", "input=2,22,13,17 weight=22,1,3,5 groups=22 padding=1 bias layout=nhwc", 1, kTwo},
          {"odd channels", "input=2,17,9,11 weight=17,1,3,3 groups=17 padding=1 residual activation=relu layout=nhwc",
           2, kAny},
          {"fp16, eight channels",
           "input=2,40,9,11 weight=40,1,3,3 groups=40 padding=1 dtype=f16 bias residual "
           "activation=leaky_relu slope=0.25 layout=nhwc",
           2, kEight},
          {"bf16, four channels",
           "input=2,36,9,11 weight=36,1,5,5 groups=36 padding=2 stride=2 dtype=bf16 bias "
           "layout=nhwc",
           2, kFour},
          {"bf16, odd channels", "input=2,19,9,11 weight=19,1,3,3 groups=19 padding=1 dtype=bf16 layout=nhwc", 1,
           kRegisters},
          {"boxes", "input=2,24,13,35 weight=24,1,3,5 groups=24 padding=1,2,2,0 bias layout=nhwc", 2, kBox},
          {"boxes of bf16", "input=2,72,13,17 weight=72,1,5,5 groups=72 padding=2 stride=2,1 dtype=bf16 layout=nhwc", 1,
           kBox},
          {"channels beyond the last", "input=2,72,9,11 weight=72,1,3,3 groups=72 padding=1 dtype=f16 layout=nhwc", 2,
           kAsync},
          {"aligned to one element", "input=2,16,9,11 weight=16,1,3,3 groups=16 padding=1 alignment=4 layout=nhwc", 1,
           kAny},
          {"without cp.async", "input=2,24,9,11 weight=24,1,3,3 groups=24 padding=1 dtype=f16 bias layout=nhwc", 1,
           kEight, "sm_75"},
      });
}

TEST(DepthwiseNhwc, Filters) {
  run("depthwise nhwc filters",
      {
          {"several outputs per channel",
           "input=2,6,13,11 weight=18,1,3,2 groups=6 padding=1 bias residual layout=nhwc", 2, kAny},
          {"several of bf16", "input=2,20,9,11 weight=40,1,3,3 groups=20 padding=1 stride=1,2 dtype=bf16 layout=nhwc",
           1, kAny},
          {"stride", "input=2,24,25,33 weight=24,1,7,7 groups=24 stride=2,3 padding=3 layout=nhwc", 1, kAny},
          {"dilation", "input=1,24,23,26 weight=24,1,3,3 groups=24 dilation=6,2 padding=6,2 bias layout=nhwc", 2, kAny},
          {"stride and dilation with a common divisor",
           "input=1,8,37,40 weight=8,1,3,3 groups=8 stride=4,3 dilation=6,2 padding=6,3 layout=nhwc", 2, kAny},
          {"dilation beyond the image", "input=1,8,9,7 weight=8,1,3,3 groups=8 dilation=11 padding=11 layout=nhwc", 1,
           kAny},
          {"large filters", "input=1,12,40,37 weight=12,1,31,31 groups=12 padding=15 bias layout=nhwc", 1,
           kRolledFilter},
          {"large filters, several rows",
           "input=1,12,20,18 weight=12,1,27,13 groups=12 padding=13,6 dtype=bf16 "
           "layout=nhwc",
           1, kRolledRows},
          {"large dilated filters",
           "input=1,6,60,40 weight=6,1,21,31 groups=6 dilation=2,1 stride=3,1 padding=20,15 layout=nhwc", 1,
           kRolledFilter},
          {"gradient", "input=2,12,9,14 weight=12,1,3,5 groups=12 padding=0,2 bias operation=data_gradient layout=nhwc",
           1, kAny},
          {"gradient with a stride",
           "input=2,8,18,16 weight=8,1,3,3 groups=8 stride=2 padding=1 dtype=f16 operation=data_gradient layout=nhwc",
           1, kBox},
          {"gradient with strides that differ",
           "input=2,12,22,19 weight=12,1,5,3 groups=12 stride=1,3 padding=3,0 bias residual operation=data_gradient "
           "layout=nhwc",
           1, kAsync},
          {"gradient with a stride beyond the filter",
           "input=2,6,21,23 weight=6,1,3,2 groups=6 stride=4,3 padding=0,1 bias operation=data_gradient layout=nhwc", 1,
           kAny},
          {"gradient with a crop",
           "input=1,8,9,9 weight=8,1,2,3 groups=8 padding=3,4 operation=data_gradient layout=nhwc", 1, kAny},
      });
}

}  // namespace
}  // namespace jitconv::test
