// Some hundred small kernels that between them print every hole of every template in each of its forms and reach both
// sides of every predicate. The suite runs thousands of convolutions that people use; these were chosen by what they
// can break, so that a mistake in a template or an emitter is seen in seconds.
#include "host/quick/quick.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>

namespace jitconv::test {
namespace {

using codegen::ConvPlan;
using codegen::DepthwiseTiling;
using codegen::DirectTiling;
using codegen::Family;

Wanted direct(std::function<bool(const DirectTiling&)> wanted) {
  return [wanted = std::move(wanted)](const ConvPlan& plan) {
    const auto* tiling = plan.tiling<DirectTiling>();
    return tiling != nullptr && wanted(*tiling);
  };
}

Wanted depthwise(std::function<bool(const DepthwiseTiling&)> wanted) {
  return [wanted = std::move(wanted)](const ConvPlan& plan) {
    const auto* tiling = plan.tiling<DepthwiseTiling>();
    return tiling != nullptr && wanted(*tiling);
  };
}

Wanted stores(DepthwiseTiling::Store store) {
  return depthwise([store](const DepthwiseTiling& tiling) { return tiling.store == store; });
}

const Wanted kDirect = family(Family::direct);
const Wanted kRolled = direct([](const DirectTiling& tiling) { return !tiling.unroll_rows; });
const Wanted kManyRows = direct([](const DirectTiling& tiling) { return tiling.thread_p > 1 && tiling.lanes_p > 1; });
const Wanted kSeveralChunks = direct([](const DirectTiling& tiling) { return tiling.chunk_c <= 4; });
const Wanted kVectorCopies = direct([](const DirectTiling& tiling) { return tiling.copy_vector == 4; });
const Wanted kSingleCopies = direct([](const DirectTiling& tiling) { return tiling.copy_vector == 1; });

TEST(Quick, Fallback) {
  run("fallback",
      {
          {"nchw", "input=2,6,23,31 weight=21,6,3,5 padding=1,2,0,1 stride=1,2 dilation=2,1 bias residual"},
          {"nchw, groups", "input=2,6,13,11 weight=15,2,3,3 groups=3 padding=1 bias residual activation=relu"},
          {"nchw, many filters of a group", "input=1,4,9,9 weight=44,2,3,3 groups=2 padding=1 bias"},
          {"nchw, small", "input=1,3,5,5 weight=3,3,3,3 padding=1"},
          {"nhwc", "input=2,6,23,31 weight=21,6,3,3 padding=1 stride=2,1 input_layout=nhwc output_layout=nhwc bias"},
          {"nhwc, groups",
           "input=2,6,13,11 weight=15,2,3,3 groups=3 padding=1 input_layout=nhwc output_layout=nhwc bias"},
          {"nhwc, an odd number of pixels",
           "input=1,5,7,9 weight=6,5,3,3 input_layout=nhwc output_layout=nhwc residual"},
          {"nhwc to nchw", "input=3,5,7,9 weight=6,5,3,3 input_layout=nhwc padding=2"},
          {"fp16", "input=2,6,13,21 weight=11,6,3,3 padding=1 dtype=f16 bias"},
          {"bf16", "input=2,6,13,21 weight=11,6,3,3 padding=1 dtype=bf16 residual"},
          {"far apart", "input=2,4,60,70 weight=10,4,3,3 dilation=21,33 padding=20,30"},
      });
}

TEST(Quick, DirectTypesAndArchitectures) {
  run("direct types",
      {
          {"fp16", "input=2,9,21,36 weight=24,9,3,3 padding=1 dtype=f16 bias residual activation=leaky_relu slope=0.25",
           2, kDirect},
          {"fp16, copies of four", "input=2,8,12,64 weight=16,8,3,3 padding=1 dtype=f16", 2, kVectorCopies},
          {"bf16", "input=2,9,21,35 weight=24,9,3,3 padding=1 dtype=bf16 bias activation=silu", 2, kDirect},
          {"without cp.async", "input=2,13,17,35 weight=21,13,3,3 padding=1,2,2,0 bias", 2, kDirect, "sm_75"},
          {"without cp.async, copies of four", "input=2,8,12,64 weight=16,8,3,3 padding=1", 2, kVectorCopies, "sm_75"},
          {"another generation", "input=2,13,17,35 weight=21,13,3,3 padding=1,2,2,0 bias", 1, kDirect, "sm_80"},
          {"gelu", "input=1,4,9,11 weight=6,4,3,3 activation=gelu_erf bias", 1, kDirect},
          {"gelu by tanh", "input=1,4,9,11 weight=6,4,3,3 activation=gelu_tanh bias residual", 1, kDirect},
          {"sigmoid", "input=1,4,9,11 weight=6,4,3,3 activation=sigmoid residual", 1, kDirect},
          {"tanh", "input=1,4,9,11 weight=6,4,3,3 activation=tanh", 1, kDirect},
          {"hardswish", "input=1,4,9,11 weight=6,4,3,3 activation=hardswish bias", 1, kDirect},
          {"leaky relu with a slope that is not short", "input=1,4,9,11 weight=6,4,3,3 activation=leaky_relu slope=0.3",
           1, kDirect},
          {"clamp with limits that are not short",
           "input=1,4,9,11 weight=6,4,3,3 activation=clamp clamp_min=-0.1234567 clamp_max=1.7654321", 1, kDirect},
      });
}

TEST(Quick, Depthwise) {
  using Store = DepthwiseTiling::Store;
  const Wanted rolled = depthwise([](const DepthwiseTiling& tiling) { return !tiling.unroll_rows; });
  const Wanted several = depthwise([](const DepthwiseTiling& tiling) { return tiling.planes > 1; });
  const Wanted several_vectors =
      depthwise([](const DepthwiseTiling& tiling) { return tiling.planes > 1 && tiling.store == Store::vector; });
  run("depthwise",
      {
          {"flat store", "input=3,7,9,11 weight=7,1,3,3 groups=7 padding=1,2,1,1 bias residual activation=relu", 3,
           stores(Store::flat)},
          {"flat store, several outputs per channel",
           "input=2,6,23,31 weight=12,1,3,5 groups=6 padding=1,2 dilation=1,2 bias residual", 2, stores(Store::flat)},
          {"small planes", "input=5,9,7,7 weight=9,1,3,3 groups=9 padding=1 bias", 3, several},
          {"small planes of fp16", "input=5,9,7,7 weight=9,1,3,3 groups=9 padding=1 dtype=f16 bias residual", 2,
           several},
          {"small planes, aligned to one element", "input=5,9,8,8 weight=9,1,3,3 groups=9 padding=1 alignment=4", 2,
           several},
          {"large outputs of small planes", "input=3,5,6,6 weight=5,1,2,2 groups=5 padding=1", 2, several},
          {"vector store", "input=2,6,33,64 weight=6,1,5,3 groups=6 padding=2,1 bias residual", 3,
           stores(Store::vector)},
          {"vector store of several planes", "input=3,5,9,8 weight=5,1,3,3 groups=5 padding=1 residual", 2,
           several_vectors},
          {"vector store of ragged columns", "input=1,3,20,140 weight=3,1,3,3 groups=3 padding=1 bias", 3,
           stores(Store::vector)},
          {"vector store, several outputs per channel",
           "input=2,4,13,32 weight=12,1,3,3 groups=4 padding=1 bias residual", 1, stores(Store::vector)},
          {"vector store of bf16", "input=2,6,13,64 weight=6,1,3,3 groups=6 padding=1 dtype=bf16", 1,
           stores(Store::vector)},
          {"row store", "input=2,3,19,1102 weight=3,1,3,3 groups=3 padding=1,1,0,1 bias residual", 3,
           stores(Store::rows)},
          {"row store, several outputs per channel",
           "input=2,4,23,139 weight=12,1,3,5 groups=4 padding=1,2 dilation=1,2 bias", 3, stores(Store::rows)},
          {"row store of fp16", "input=2,3,19,131 weight=3,1,3,3 groups=3 padding=1 dtype=f16", 1, stores(Store::rows)},
          {"rows without padding", "input=1,2,70,141 weight=2,1,3,3 groups=2", 2, stores(Store::rows)},
          {"stride", "input=2,8,45,53 weight=8,1,7,7 groups=8 stride=2 padding=3", 2, family(Family::depthwise)},
          {"stride and dilation that differ along the axes",
           "input=2,4,47,50 weight=4,1,3,5 groups=4 stride=3,2 dilation=2,3 padding=2,5", 2, family(Family::depthwise)},
          {"dilation of rows", "input=2,4,47,48 weight=4,1,3,3 groups=4 dilation=4,1 padding=4,1", 2,
           family(Family::depthwise)},
          {"two columns of padding", "input=2,4,17,64 weight=4,1,3,5 groups=4 padding=1,2", 2,
           family(Family::depthwise)},
          {"large filters", "input=1,3,40,40 weight=3,1,31,31 groups=3 padding=15", 1, rolled},
          {"large dilated filters", "input=1,3,60,40 weight=3,1,21,31 groups=3 dilation=2,1 padding=20,15", 1, rolled},
          {"tensors aligned to one element", "input=2,6,15,64 weight=6,1,3,3 groups=6 padding=1 alignment=4 bias", 2,
           family(Family::depthwise)},
          {"without cp.async", "input=2,6,15,64 weight=6,1,3,3 groups=6 padding=1 bias", 1, family(Family::depthwise),
           "sm_75"},
      });
}

TEST(Quick, DirectNhwc) {
  const std::string both = " input_layout=nhwc output_layout=nhwc";
  run("direct nhwc",
      {
          {"ragged everywhere", "input=2,7,13,35 weight=21,7,3,3 padding=1,2,2,0 bias residual" + both, 3, kDirect},
          {"vectors", "input=1,16,9,35 weight=32,16,3,3 padding=1 bias residual activation=relu" + both, 3, kDirect},
          {"groups of odd sizes", "input=2,9,11,13 weight=30,3,3,3 groups=3 padding=1 bias residual" + both, 2,
           kDirect},
          {"groups of six", "input=2,8,11,13 weight=12,4,3,3 groups=2 padding=1 bias residual" + both, 2, kDirect},
          {"tensors aligned to one element", "input=2,8,11,13 weight=32,8,3,3 padding=1 alignment=4" + both, 2,
           kDirect},
          {"fp16", "input=1,16,7,19 weight=40,16,3,3 padding=1 dtype=f16 bias residual activation=relu" + both, 2,
           kDirect},
          {"bf16 aligned to four bytes",
           "input=2,12,11,19 weight=24,12,3,3 stride=2 padding=1 dtype=bf16 alignment=4" + both, 2, kDirect},
          {"nchw to nhwc", "input=2,9,21,35 weight=24,9,3,3 stride=2 padding=1 bias output_layout=nhwc", 2, kDirect},
          {"nhwc to nchw", "input=2,9,21,35 weight=24,9,3,5 dilation=2,1 padding=1 bias input_layout=nhwc", 2, kDirect},
          {"one row", "input=2,16,1,200 weight=24,16,1,5 padding=0,2" + both, 1, kDirect},
      });
}

TEST(Quick, DirectNchw) {
  run("direct nchw",
      {
          {"ragged everywhere", "input=2,7,13,43 weight=21,7,3,3 padding=1,2,2,0 bias residual activation=relu", 3,
           kDirect},
          {"stride and dilation that differ along the axes",
           "input=2,5,41,67 weight=19,5,5,3 stride=2,3 padding=2,2,1,1 dilation=1,2", 2, kDirect},
          {"dilation of rows", "input=1,6,33,40 weight=9,6,3,5 dilation=3,1 padding=3,2", 2, kManyRows},
          {"stride of rows", "input=1,6,35,40 weight=9,6,3,5 stride=3,1 padding=1,2 bias", 2, kManyRows},
          {"groups", "input=2,12,19,33 weight=30,4,3,5 groups=3 padding=1,2 bias residual", 2, kDirect},
          {"groups with more inputs than outputs", "input=2,18,11,13 weight=6,9,3,3 groups=2 padding=1 bias", 1,
           kDirect},
          {"copies of four", "input=2,8,20,64 weight=16,8,3,3 padding=1 residual", 3, kVectorCopies},
          {"copies of four, three columns of padding", "input=1,9,12,68 weight=11,9,3,7 padding=1,3 bias", 2,
           kVectorCopies},
          {"tensors aligned to one element", "input=2,8,20,64 weight=16,8,3,3 padding=1 alignment=4 bias", 2,
           kSingleCopies},
          {"chunks that divide the channels", "input=1,32,7,17 weight=24,32,3,3 padding=1", 3, kSeveralChunks},
          {"chunks that do not", "input=1,35,7,17 weight=24,35,3,3 padding=1", 3, kSeveralChunks},
          {"one filter", "input=2,8,16,24 weight=1,8,3,3", 2, kDirect},
          {"two filters", "input=2,7,16,24 weight=2,7,3,3 padding=1", 2, kDirect},
          {"many filters", "input=1,6,10,20 weight=160,6,3,3 padding=1 bias", 2, kDirect},
          {"tiles that divide P and Q", "input=1,4,64,128 weight=16,4,1,1 bias", 3, kDirect},
          {"large filters", "input=1,2,20,20 weight=5,2,15,15 padding=7", 2, kRolled},
          {"large, narrow and dilated filters", "input=1,2,24,20 weight=5,2,17,7 dilation=2,1 padding=16,3", 2,
           kRolled},
          {"large, wide filters", "input=1,2,16,50 weight=5,2,5,27 padding=2,13 stride=2,1", 2, kRolled},
          {"one row", "input=2,16,1,300 weight=24,16,1,5 padding=0,2 dilation=1,3 stride=1,2", 2, kDirect},
          {"one pixel", "input=5,32,3,3 weight=20,32,3,3 bias residual", 2, kDirect},
          {"wide tiles", "input=1,3,12,1500 weight=8,3,3,3 stride=1,11", 2, kDirect},
          {"pointwise", "input=2,33,5,50 weight=45,33,1,1 activation=clamp clamp_min=-2 clamp_max=5", 2, kDirect},
      });
}

}  // namespace
}  // namespace jitconv::test
