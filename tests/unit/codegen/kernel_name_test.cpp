// Names of kernels: examples, and what every name keeps to.
#include "codegen/text/kernel_name.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>

#include "codegen/convolution_name.h"
#include "codegen/plan.h"
#include "jitconv/error.h"
#include "support/random_specs.h"

namespace jitconv::codegen {
namespace {

std::string name_of(const ConvSpec& spec, const Tiling& tiling = DirectTiling{}) {
  ConvPlan plan;
  plan.convolution_name = convolution_name(canonical(spec));
  plan.kernels.push_back({{}, tiling, {}});
  return kernel_name(plan);
}

std::string name_of(std::string_view spec, const Tiling& tiling = DirectTiling{}) {
  return name_of(parse_spec(spec), tiling);
}

TEST(KernelName, SaysWhatAProfilerShouldShow) {
  EXPECT_EQ(name_of("input=8,32,512,512 weight=64,32,5,9 padding=2,4 dilation=2,3 bias activation=relu"),
            "jitconv_direct_fprop_fp32_nchw_n8c32h512w512_k64_5x9_pad2x4_d2x3_bias_relu");
  EXPECT_EQ(name_of("input=1,4,9,9 weight=8,1,3,3 groups=4 stride=2,1 dtype=bf16 input_layout=nhwc "
                    "output_layout=nchw residual",
                    FallbackTiling{}),
            "jitconv_fallback_fprop_bf16_nhwc_nchw_n1c4h9w9_k8_3x3_s2x1_g4_residual");
}

TEST(KernelName, HasMathModesOfFloatsAndTypesOfOthers) {
  const std::string shape = "input=1,2,9,9 weight=2,2,3,3", rest = "_nchw_n1c2h9w9_k2_3x3";
  for (const char* math : {"ieee", "fp32", "tf32", "fp16x3"}) {
    EXPECT_EQ(name_of(shape + " math=" + math), std::string("jitconv_direct_fprop_") + math + rest);
    EXPECT_EQ(name_of(shape + " dtype=f16 math=" + math), "jitconv_direct_fprop_f16" + rest);
  }
}

TEST(KernelName, HasTheOperation) {
  const std::string shape = "input=1,2,9,9 weight=2,2,3,3 ", rest = "_nchw_n1c2h9w9_k2_3x3";
  EXPECT_EQ(name_of(shape + "operation=data_gradient dy_activation=relu"),
            "jitconv_direct_dgrad_fp32" + rest + "_dy_relu");
  EXPECT_EQ(name_of(shape + "operation=weight_gradient dtype=bf16 output_dtype=f32", WgradTiling{}),
            "jitconv_wgrad_wgrad_bf16_f32" + rest);
}

TEST(KernelName, SpellsOutOnlyAsymmetricPadding) {
  const std::string shape = "input=1,2,9,9 weight=2,2,3,3 ", rest = "jitconv_direct_fprop_fp32_nchw_n1c2h9w9_k2_3x3";
  EXPECT_EQ(name_of(shape), rest);
  EXPECT_EQ(name_of(shape + "padding=1"), rest + "_pad1x1");
  EXPECT_EQ(name_of(shape + "padding=0,1,2,2"), rest + "_pad_t0b1l2r2");
  EXPECT_EQ(name_of(shape + "padding=1,1,0,2"), rest + "_pad_t1b1l0r2");
}

TEST(KernelName, TakesPaddingForSymmetricThatAStrideSkips) {
  const std::string shape = "input=1,2,8,8 weight=2,2,3,3 stride=2 ",
                    rest = "jitconv_direct_fprop_fp32_nchw_n1c2h8w8_k2_3x3";
  EXPECT_EQ(canonical(parse_spec(shape + "padding=1")).padding, Padding(1, 0, 1, 0));
  EXPECT_EQ(name_of(shape + "padding=1"), rest + "_pad1x1_s2x2");
  EXPECT_EQ(name_of(shape + "padding=0,1,0,1"), rest + "_pad_t0b1l0r1_s2x2");
}

RC_GTEST_PROP(KernelNameProperty, IsAShortCIdentifier, ()) {
  ConvSpec spec = *test::valid_operations();
  const auto is_identifier = [](const std::string& name) {
    return std::all_of(name.begin(), name.end(),
                       [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
  };
  ConvPlan plan;
  plan.convolution_name = convolution_name(canonical(spec));
  plan.kernels.push_back({{}, DepthwisePlanesTiling{}, {}});
  RC_ASSERT(is_identifier(kernel_name(plan)));
  // Whatever the numbers are.
  const std::int64_t most = std::numeric_limits<std::int32_t>::max();
  spec.input = {most, most, most, most};
  spec.weight = {most, most, most, most};
  spec.padding = Padding(most, 1, most, 1);
  spec.stride = spec.dilation = Size2(most);
  spec.groups = most;
  plan.convolution_name = convolution_name(spec);
  RC_ASSERT(is_identifier(kernel_name(plan)) && kernel_name(plan).size() <= 512);
}

RC_GTEST_PROP(KernelNameProperty, TellsPaddingApart, ()) {
  const ConvSpec spec = canonical(*test::valid_operations());
  ConvSpec other = spec;
  other.padding =
      Padding(*rc::gen::inRange(0, 4), *rc::gen::inRange(0, 4), *rc::gen::inRange(0, 4), *rc::gen::inRange(0, 4));
  try {
    other = canonical(other);
  } catch (const SpecError&) {
    RC_DISCARD("no valid padding");
  }
  RC_PRE(other.stride == spec.stride && other.padding != spec.padding);
  RC_ASSERT(name_of(other) != name_of(spec));
}

}  // namespace
}  // namespace jitconv::codegen
