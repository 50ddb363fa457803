// canonical(): fields that cannot matter get one value, and fields that matter keep theirs.
#include <gtest/gtest.h>

#include <cmath>

#include "codegen/plan.h"
#include "codegen/spec_fields.h"
#include "jitconv/spec.h"
#include "spec_test_support.h"

namespace jitconv {
namespace {

using codegen::canonical;
using test::headline_c;

TEST(Canonical, DropsWhatCannotMatter) {
  ConvSpec spec = headline_c();
  EXPECT_EQ(canonical(spec), spec);
  spec.epilogue.slope = 0.5f;
  spec.epilogue.clamp_max = 9;
  EXPECT_EQ(canonical(spec), headline_c());
}

TEST(Canonical, KeepsWhatMatters) {
  ConvSpec spec = headline_c();
  spec.epilogue.activation = Activation::leaky_relu;
  spec.epilogue.slope = 0.5f;
  EXPECT_EQ(canonical(spec), spec);
  spec = headline_c();
  spec.epilogue.activation = Activation::clamp;
  spec.epilogue.clamp_min = -2;
  EXPECT_EQ(canonical(spec), spec);
  spec = headline_c();
  spec.math = MathMode::tf32;
  spec.alignment = 4;
  spec.input_layout = Layout::nhwc;
  EXPECT_EQ(canonical(spec), spec);
}

TEST(Canonical, OutputTypeThatIsTheOthersHasOneName) {
  ConvSpec spec = headline_c();
  spec.output_dtype = OutputType::f32;
  EXPECT_EQ(canonical(spec), headline_c());
  spec.dtype = DataType::bf16;
  EXPECT_EQ(canonical(spec), spec);
}

TEST(Canonical, DilationOfOneTap) {
  ConvSpec spec = headline_c();
  spec.weight.r = 1;
  spec.dilation = {7, 3};
  EXPECT_EQ(canonical(spec).dilation, Size2(1, 3));
}

TEST(Canonical, PaddingNoWindowReaches) {
  ConvSpec spec;
  spec.input = {1, 4, 8, 11};
  spec.weight = {4, 4, 3, 3};
  spec.stride = {2, 4};
  spec.padding = {1, 1, 1, 2};
  // No window reads the last of 10 padded rows, which is padding. None reads the last three of 14 padded columns; two
  // of them are padding.
  EXPECT_EQ(canonical(spec).padding, Padding(1, 0, 1, 0));
  EXPECT_EQ(output_shape(canonical(spec)), output_shape(spec));
}

TEST(Canonical, StrideOfASingleWindow) {
  ConvSpec spec;
  spec.input = {1, 4, 3, 4};
  spec.weight = {4, 4, 3, 3};
  spec.stride = 5;
  // The width has an unused column of input, so stride 1 would give two outputs.
  EXPECT_EQ(canonical(spec).stride, Size2(1, 5));
}

TEST(Canonical, LayoutOfTensorsThatHaveButOne) {
  ConvSpec spec;
  spec.input = {2, 1, 5, 5};
  spec.weight = {6, 1, 5, 5};
  spec.input_layout = spec.output_layout = Layout::nhwc;
  EXPECT_EQ(canonical(spec).input_layout, Layout::nchw);
  EXPECT_EQ(canonical(spec).output_layout, Layout::nchw);
  spec.weight = {6, 1, 4, 5};
  EXPECT_EQ(canonical(spec).output_layout, Layout::nhwc);
}

TEST(Canonical, MatricesAreNhwc) {
  const auto layouts = [](const std::string& text) {
    const ConvSpec spec = canonical(parse_spec(text));
    return std::pair(spec.input_layout, spec.output_layout);
  };
  const auto both = [](Layout layout) { return std::pair(layout, layout); };
  EXPECT_EQ(layouts("input=400,256,1,1 weight=1024,256,1,1"), both(Layout::nhwc));
  EXPECT_EQ(layouts("input=400,256,1,1 weight=1024,256,1,1 operation=data_gradient"), both(Layout::nhwc));
  EXPECT_EQ(layouts("input=400,256,1,1 weight=1024,256,1,1 layout=nhwc operation=weight_gradient"), both(Layout::nchw));
  EXPECT_EQ(layouts("input=400,256,1,1 weight=256,1,1,1 groups=256 layout=nhwc"), both(Layout::nchw));
  EXPECT_EQ(layouts("input=8,256,7,7 weight=64,256,7,7"), both(Layout::nchw));
}

TEST(Canonical, NegativeZeroBecomesZero) {
  ConvSpec spec = headline_c();
  spec.epilogue.activation = Activation::clamp;
  spec.epilogue.clamp_min = -0.0f;
  EXPECT_FALSE(std::signbit(canonical(spec).epilogue.clamp_min));
}

}  // namespace
}  // namespace jitconv
