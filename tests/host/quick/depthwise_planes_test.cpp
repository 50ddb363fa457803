// The depthwise family for small planes of NCHW tensors: every form of its templates, by plans that reach them.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>

#include "host/quick/quick.h"

namespace jitconv::test {
namespace {

using codegen::DepthwisePlanesTiling;

Wanted planes(std::function<bool(const DepthwisePlanesTiling&)> wanted) {
  return [wanted = std::move(wanted)](const codegen::ConvPlan& plan) {
    const auto* tiling = plan.tiling<DepthwisePlanesTiling>();
    return tiling != nullptr && wanted(*tiling);
  };
}

Wanted rows(int thread_p) {
  return planes([thread_p](const DepthwisePlanesTiling& tiling) { return tiling.thread_p == thread_p; });
}

TEST(DepthwisePlanes, TypesRowsAndVectors) {
  run("depthwise planes",
      {
          {"ragged everywhere", "input=3,20,13,12 weight=20,1,3,5 groups=20 padding=1,2,2,0 bias residual", 2, rows(4)},
          {"one thread for a plane", "input=3,24,7,7 weight=24,1,3,3 groups=24 padding=1 activation=relu", 1, rows(7)},
          {"one row of a thread", "input=2,24,9,14 weight=24,1,5,3 groups=24 padding=2,1 bias", 2, rows(1)},
          {"fp16, odd rows", "input=3,24,7,7 weight=24,1,5,5 groups=24 padding=2 dtype=f16 bias residual", 2, rows(4)},
          {"bf16, words", "input=5,24,14,14 weight=24,1,3,3 groups=24 padding=1 dtype=bf16 bias activation=silu", 2,
           rows(5)},
          {"stride and dilation", "input=2,16,19,23 weight=16,1,3,3 groups=16 stride=2,3 dilation=3,2 padding=3 bias",
           2, rows(3)},
          {"more rows of y than of x", "input=2,16,5,6 weight=16,1,2,2 groups=16 padding=3 dtype=bf16", 1, rows(5)},
      });
}

TEST(DepthwisePlanes, DataGradients) {
  run("depthwise planes, gradients",
      {
          {"dx", "operation=data_gradient input=3,24,14,12 weight=24,1,3,5 groups=24 padding=1,2", 2, rows(7)},
          {"dx of bf16", "operation=data_gradient input=3,24,7,7 weight=24,1,3,3 groups=24 dtype=bf16", 1, rows(7)},
      });
}

}  // namespace
}  // namespace jitconv::test
