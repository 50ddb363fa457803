// The text form of specs by example: what is written, what is read, and what refusals say.
#include <gtest/gtest.h>

#include <cmath>
#include <locale>
#include <string>

#include "jitconv/spec.h"
#include "spec_test_support.h"

namespace jitconv {
namespace {

using test::headline_c;
using test::Thrown;
using test::thrown_by;

TEST(SpecText, WritesEveryField) {
  ConvSpec spec = headline_c();
  spec.epilogue.bias = true;
  EXPECT_EQ(to_string(spec),
            "input=8,32,512,512 weight=64,32,5,9 stride=1,1 padding=2,2,4,4 dilation=2,3 groups=1 dtype=f32 "
            "input_layout=nchw output_layout=nchw math=fp32 bias=true residual=false activation=none slope=0.01 "
            "clamp_min=0 clamp_max=6 alignment=16 operation=forward output_dtype=same dy_activation=none");
}

TEST(SpecText, ReadsAbbreviations) {
  const ConvSpec spec = parse_spec(
      "  input=8,32,512,512\tweight=64,32,5,9 padding=2,4\n dilation=2,3 stride=1 bias layout=nhwc "
      "activation=gelu_erf ");
  ConvSpec expected = headline_c();
  expected.epilogue.bias = true;
  expected.input_layout = expected.output_layout = Layout::nhwc;
  expected.epilogue.activation = Activation::gelu_erf;
  EXPECT_EQ(spec, expected);
  EXPECT_EQ(parse_spec("padding=5").padding, Padding(5));
  EXPECT_EQ(parse_spec("padding=1,2,3,4").padding, Padding(1, 2, 3, 4));
  EXPECT_EQ(parse_spec("stride=3").stride, Size2(3));
  EXPECT_EQ(parse_spec(""), ConvSpec{});
}

TEST(SpecText, ReadsPyTorchsWords) {
  const auto dtype = [](const char* word) { return parse_spec(std::string("dtype=") + word).dtype; };
  for (const char* word : {"f32", "fp32", "float32", "float", "torch.float32", "FP32"})
    EXPECT_EQ(dtype(word), DataType::f32) << word;
  for (const char* word : {"f16", "fp16", "float16", "half", "torch.half"})
    EXPECT_EQ(dtype(word), DataType::f16) << word;
  for (const char* word : {"bf16", "bfloat16", "torch.bfloat16"}) EXPECT_EQ(dtype(word), DataType::bf16) << word;
  const auto layout = [](const char* word) { return parse_spec(std::string("input_layout=") + word).input_layout; };
  for (const char* word : {"NHWC", "channels_last", "torch.channels_last"})
    EXPECT_EQ(layout(word), Layout::nhwc) << word;
  for (const char* word : {"NCHW", "contiguous", "contiguous_format", "channels_first"})
    EXPECT_EQ(layout(word), Layout::nchw) << word;
  const ConvSpec both = parse_spec("layout=channels_last");
  EXPECT_EQ(both.input_layout, Layout::nhwc);
  EXPECT_EQ(both.output_layout, Layout::nhwc);
  EXPECT_EQ(parse_spec("activation=ReLU").epilogue.activation, Activation::relu);
  EXPECT_EQ(parse_spec("activation=LeakyReLU").epilogue.activation, Activation::leaky_relu);
  EXPECT_EQ(parse_spec("activation=gelu").epilogue.activation, Activation::gelu_erf);
  EXPECT_EQ(parse_spec("math=TF32").math, MathMode::tf32);
  EXPECT_EQ(parse_spec("output_dtype=float32").output_dtype, OutputType::f32);
  EXPECT_EQ(parse_spec("output_dtype=torch.bfloat16").output_dtype, OutputType::bf16);
  EXPECT_EQ(parse_spec("output_dtype=Same").output_dtype, OutputType::same);
  EXPECT_TRUE(parse_spec("bias=True").epilogue.bias);
}

TEST(SpecText, ReadsOperations) {
  EXPECT_EQ(parse_spec("operation=forward").operation, Operation::forward);
  EXPECT_EQ(parse_spec("operation=data_gradient").operation, Operation::data_gradient);
  EXPECT_EQ(parse_spec("operation=weight_gradient").operation, Operation::weight_gradient);
}

TEST(SpecText, WritesItsOwnWords) {
  const std::string text =
      to_string(parse_spec("dtype=half layout=channels_last padding=same weight=1,1,3,3 activation=SiLU"));
  EXPECT_NE(text.find(" padding=1,1,1,1 "), std::string::npos) << text;
  EXPECT_NE(text.find(" dtype=f16 input_layout=nhwc output_layout=nhwc "), std::string::npos) << text;
  EXPECT_NE(text.find(" activation=silu "), std::string::npos) << text;
}

// torch.nn.Conv2d(padding='same'): the total is dilation * (taps - 1), its smaller half in front.
TEST(SpecText, SamePaddingIsPyTorchs) {
  EXPECT_EQ(parse_spec("padding=same weight=64,32,5,9 dilation=2,3").padding, Padding(4, 4, 12, 12));
  EXPECT_EQ(parse_spec("weight=8,8,2,4 padding=SAME").padding, Padding(0, 1, 1, 2));
  EXPECT_EQ(parse_spec("weight=8,8,1,1 padding=same").padding, Padding(0));
  EXPECT_EQ(parse_spec("weight=8,8,3,3 padding=valid stride=2").padding, Padding(0));
  const ConvSpec spec = parse_spec("padding=same input=2,8,30,41 weight=8,8,4,6 dilation=3,5");
  EXPECT_EQ(output_shape(spec), (TensorShape{2, 8, 30, 41}));
  // What validate() refuses anyway must not overflow here.
  EXPECT_EQ(parse_spec("padding=same weight=1,1,9223372036854775807,3 dilation=9223372036854775807,1").padding,
            Padding(0, 0, 1, 1));
}

struct BadText {
  const char *text, *field, *message;
};

TEST(SpecText, NamesWhatItCannotRead) {
  const BadText cases[] = {
      {"inptu=1,1,1,1", "inptu", "unknown key \"inptu\"; known keys are input, weight, stride"},
      {"input=1,2,3", "input", "input is \"1,2,3\", must be 4 values"},
      {"input=5", "input", "must be 4 values"},
      {"input=1,2,3,x", "input", "input is \"x\", must be a 64-bit integer"},
      {"input=1,2,3,", "input", "input is \"\""},
      {"input=1,2,3,4.5", "input", "input is \"4.5\""},
      {"groups=99999999999999999999", "groups", "must be a 64-bit integer"},
      {"groups=+1", "groups", "groups is \"+1\""},
      {"stride=1,2,3", "stride", "must be 1 or 2 values"},
      {"padding=1,2,3", "padding", "must be 1, 2 or 4 values"},
      {"groups=1,1", "groups", "must be 1 values"},
      {"dtype=f64", "dtype", "dtype is \"f64\", must be one of f32, f16, bf16"},
      {"dtype=torch.torch.half", "dtype", "must be one of f32, f16, bf16"},
      {"layout=half", "input_layout", "input_layout is \"half\", must be one of nchw, nhwc"},
      {"activation=softmax", "activation", "must be one of none, relu"},
      {"operation=backward", "operation",
       "operation is \"backward\", must be one of forward, data_gradient, weight_gradient"},
      {"output_dtype=f64", "output_dtype", "output_dtype is \"f64\", must be one of same, f32, f16, bf16"},
      {"padding=full", "padding", "padding is \"full\", must be a 64-bit integer"},
      {"padding=same,same", "padding", "padding is \"same\", must be a 64-bit integer"},
      {"padding=same padding=1 weight=1,1,3,3", "padding", "given twice"},
      {"stride=1,2 weight=1,1,3,3 padding=same", "padding",
       "padding is \"same\", which needs stride 1; the stride is 1,2"},
      {"padding=same input=1,1,9,9", "padding", "padding is \"same\", which depends on the filter's extents"},
      {"bias=yes", "bias", "must be true or false"},
      {"slope=1,5", "slope", "must be 1 values"},
      {"slope=1e99", "slope", "32-bit float"},
      {"groups", "groups", "not of the form key=value"},
      {"groups=1 groups=1", "groups", "given twice"},
      {"layout=nchw input_layout=nhwc", "input_layout", "given twice"},
  };
  for (const BadText& bad : cases) {
    const Thrown thrown = thrown_by([&] { parse_spec(bad.text); });
    EXPECT_EQ(thrown.field, bad.field) << bad.text;
    EXPECT_NE(thrown.message.find(bad.message), std::string::npos) << bad.text << ": " << thrown.message;
  }
}

class CommaPoint : public std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

TEST(SpecText, IgnoresTheLocale) {
  ConvSpec spec = headline_c();
  spec.input.w = 1234567;
  spec.epilogue.slope = 0.25f;
  const std::string text = to_string(spec);
  const std::locale before = std::locale::global(std::locale(std::locale::classic(), new CommaPoint));
  const std::string again = to_string(spec);
  const bool equal = parse_spec(text) == spec;
  std::locale::global(before);
  EXPECT_EQ(again, text);
  EXPECT_TRUE(equal);
}

TEST(SpecText, FloatsComeBackBitForBit) {
  ConvSpec spec = headline_c();
  for (const float value : {0.1f, 1.0f / 3, 1e-45f, 3.4028235e38f, -0.0f, 16777217.0f}) {
    spec.epilogue.slope = value;
    const float read = parse_spec(to_string(spec)).epilogue.slope;
    EXPECT_EQ(read, value);
    EXPECT_EQ(std::signbit(read), std::signbit(value));
  }
}

TEST(Names, OfEveryEnumValue) {
  EXPECT_EQ(to_string(Operation::data_gradient), "data_gradient");
  EXPECT_EQ(to_string(OutputType::same), "same");
  EXPECT_EQ(to_string(OutputType::bf16), "bf16");
  EXPECT_EQ(to_string(DataType::bf16), "bf16");
  EXPECT_EQ(to_string(Layout::nhwc), "nhwc");
  EXPECT_EQ(to_string(MathMode::tf32), "tf32");
  EXPECT_EQ(to_string(Activation::none), "none");
  EXPECT_EQ(to_string(Activation::gelu_tanh), "gelu_tanh");
  EXPECT_EQ(to_string(Activation::clamp), "clamp");
  EXPECT_EQ(to_string(static_cast<Activation>(10)), "invalid");
}

}  // namespace
}  // namespace jitconv
