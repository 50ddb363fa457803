// Specs by example: what is valid, what each broken rule says, equality and hashing. The canonical form is in
// canonical_test.cpp, the text form in spec_text_test.cpp; statements about all specs are in spec_property_test.cpp.
#include "jitconv/spec.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <string>

#include "codegen/plan.h"
#include "codegen/spec_fields.h"
#include "jitconv/error.h"
#include "spec_test_support.h"

namespace jitconv {
namespace {

using codegen::canonical;
using codegen::hash_value;
using test::headline_c;
using test::Thrown;
using test::thrown_by;

TEST(OutputShape, HeadlineCaseShrinksUnlessPaddingMatchesDilation) {
  ConvSpec spec = headline_c();
  EXPECT_EQ(output_shape(spec), (TensorShape{8, 64, 508, 496}));
  spec.padding = {4, 12};
  EXPECT_EQ(output_shape(spec), (TensorShape{8, 64, 512, 512}));
}

TEST(OutputShape, PaddingOfEachSideCounts) {
  ConvSpec spec;
  spec.input = {1, 1, 10, 20};
  spec.weight = {1, 1, 3, 5};
  EXPECT_EQ(output_shape(spec), (TensorShape{1, 1, 8, 16}));
  spec.padding = {1, 2, 3, 4};
  EXPECT_EQ(output_shape(spec), (TensorShape{1, 1, 11, 23}));
  spec.stride = {3, 4};
  EXPECT_EQ(output_shape(spec), (TensorShape{1, 1, 4, 6}));
}

TEST(OutputShape, EmptyBatchGivesEmptyOutput) {
  ConvSpec spec = headline_c();
  spec.input.n = 0;
  EXPECT_EQ(output_shape(spec), (TensorShape{0, 64, 508, 496}));
}

TEST(OutputShape, WindowAsLargeAsThePaddedInputFitsOnce) {
  ConvSpec spec;
  spec.input = {1, 1, 5, 1};
  spec.weight = {1, 1, 3, 3};
  spec.dilation = {2, 1};
  spec.padding = {0, 1};
  spec.stride = 7;
  EXPECT_EQ(output_shape(spec), (TensorShape{1, 1, 1, 1}));
}

TEST(Padding, ConvertsFromOneTwoAndFourNumbers) {
  EXPECT_EQ(Padding(3), Padding(3, 3, 3, 3));
  EXPECT_EQ(Padding(2, 4), Padding(2, 2, 4, 4));
}

TEST(ElementBytes, PerType) {
  EXPECT_EQ(element_bytes(DataType::f32), 4);
  EXPECT_EQ(element_bytes(DataType::f16), 2);
  EXPECT_EQ(element_bytes(DataType::bf16), 2);
}

struct Mutation {
  const char* name;
  void (*apply)(ConvSpec&);
  const char* field;
  const char* message;  // a part of it
};

constexpr std::int64_t kTooLarge = std::int64_t{1} << 31;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

const Mutation kMutations[] = {
    {"BatchNegative", [](ConvSpec& s) { s.input.n = -1; }, "input", "input n is -1, must be from 0 to 2147483647"},
    {"ChannelsZero", [](ConvSpec& s) { s.input.c = 0; }, "input", "input c is 0, must be from 1"},
    {"HeightZero", [](ConvSpec& s) { s.input.h = 0; }, "input", "input h is 0"},
    {"WidthTooLarge", [](ConvSpec& s) { s.input.w = kTooLarge; }, "input", "input w is 2147483648, must be from 1 to"},
    {"OutputChannelsZero", [](ConvSpec& s) { s.weight.k = 0; }, "weight", "weight k is 0"},
    {"FilterChannelsZero", [](ConvSpec& s) { s.weight.c = 0; }, "weight", "weight c is 0"},
    {"NoRows", [](ConvSpec& s) { s.weight.r = 0; }, "weight", "weight r is 0"},
    {"NegativeColumns", [](ConvSpec& s) { s.weight.s = -9; }, "weight", "weight s is -9"},
    {"StrideZero", [](ConvSpec& s) { s.stride.h = 0; }, "stride", "stride h is 0"},
    {"StrideNegative", [](ConvSpec& s) { s.stride.w = -2; }, "stride", "stride w is -2"},
    {"PaddingTop", [](ConvSpec& s) { s.padding.top = -1; }, "padding", "padding top is -1"},
    {"PaddingBottom", [](ConvSpec& s) { s.padding.bottom = -1; }, "padding", "padding bottom is -1"},
    {"PaddingLeft", [](ConvSpec& s) { s.padding.left = kTooLarge; }, "padding", "padding left is 2147483648"},
    {"PaddingRight", [](ConvSpec& s) { s.padding.right = -3; }, "padding", "padding right is -3"},
    {"PaddedTooLarge", [](ConvSpec& s) { s.padding.right = kTooLarge - 1; }, "padding", "must be at most 2147483647"},
    {"DilationZero", [](ConvSpec& s) { s.dilation.w = 0; }, "dilation", "dilation w is 0"},
    {"DilationTooLarge", [](ConvSpec& s) { s.dilation.h = kTooLarge; }, "dilation", "dilation h is 2147483648"},
    {"GroupsZero", [](ConvSpec& s) { s.groups = 0; }, "groups", "groups is 0"},
    {"GroupsDoNotDivideInput", [](ConvSpec& s) { s.groups = 3; }, "groups", "groups is 3, must divide the 32 input"},
    {"GroupsDoNotDivideOutput",
     [](ConvSpec& s) {
       s.groups = 2;
       s.weight = {63, 16, 5, 9};
     },
     "groups", "groups is 2, must divide the 63 output"},
    {"FilterChannelsDiffer", [](ConvSpec& s) { s.weight.c = 16; }, "weight",
     "weight c is 16, must be 32 = 32 input channels / 1 groups"},
    {"FilterTooTall", [](ConvSpec& s) { s.weight.r = 300; }, "weight", "spans 599x25, larger than the padded input"},
    {"FilterTooWide", [](ConvSpec& s) { s.dilation.w = 70; }, "weight", "spans 9x561"},
    {"UnknownType", [](ConvSpec& s) { s.dtype = static_cast<DataType>(3); }, "dtype", "unknown value 3"},
    {"UnknownOperation", [](ConvSpec& s) { s.operation = static_cast<Operation>(3); }, "operation", "unknown value 3"},
    {"UnknownOutputType", [](ConvSpec& s) { s.output_dtype = static_cast<OutputType>(4); }, "output_dtype", "value 4"},
    {"UnknownInputLayout", [](ConvSpec& s) { s.input_layout = static_cast<Layout>(2); }, "input_layout", "value 2"},
    {"UnknownOutputLayout", [](ConvSpec& s) { s.output_layout = static_cast<Layout>(9); }, "output_layout", "value 9"},
    {"UnknownMath", [](ConvSpec& s) { s.math = static_cast<MathMode>(200); }, "math", "value 200"},
    {"UnknownActivation", [](ConvSpec& s) { s.epilogue.activation = static_cast<Activation>(10); },
     "epilogue.activation", "value 10"},
    {"UnknownDyActivation", [](ConvSpec& s) { s.dy_activation = static_cast<Activation>(10); }, "dy_activation",
     "dy_activation has the unknown value 10, must be below 10"},
    {"DyActivationOfForward", [](ConvSpec& s) { s.dy_activation = Activation::relu; }, "dy_activation",
     "dy_activation is relu, must be none for forward"},
    {"SlopeNan", [](ConvSpec& s) { s.epilogue.slope = kNan; }, "epilogue.slope", "must be finite"},
    {"ClampMinInfinite", [](ConvSpec& s) { s.epilogue.clamp_min = -kInfinity; }, "epilogue.clamp_min", "is -inf"},
    {"ClampMaxInfinite", [](ConvSpec& s) { s.epilogue.clamp_max = kInfinity; }, "epilogue.clamp_max", "is inf"},
    {"ClampEmpty", [](ConvSpec& s) { s.epilogue.clamp_min = 7; }, "epilogue.clamp_min",
     "epilogue.clamp_min is 7, must not exceed epilogue.clamp_max, 6"},
    {"AlignmentZero", [](ConvSpec& s) { s.alignment = 0; }, "alignment", "alignment is 0"},
    {"AlignmentBelowElement", [](ConvSpec& s) { s.alignment = 2; }, "alignment",
     "power of two from 4 (one f32) to 256"},
    {"AlignmentBelowOutputElement",
     [](ConvSpec& s) {
       s.dtype = DataType::bf16;
       s.output_dtype = OutputType::f32;
       s.alignment = 2;
     },
     "alignment", "power of two from 4 (one f32) to 256"},
    {"AlignmentNoPower", [](ConvSpec& s) { s.alignment = 24; }, "alignment", "alignment is 24"},
    {"AlignmentTooLarge", [](ConvSpec& s) { s.alignment = 512; }, "alignment", "alignment is 512"},
    {"AlignmentNegative", [](ConvSpec& s) { s.alignment = std::numeric_limits<std::int64_t>::min(); }, "alignment",
     "alignment is -9223372036854775808"},
    {"InputBytes",
     [](ConvSpec& s) {
       s.input = {kTooLarge - 1, 32, kTooLarge - 9, kTooLarge - 9};
     },
     "input", "takes more than 2^62 bytes"},
    {"ImageBytesWithoutImages",
     [](ConvSpec& s) {
       s.input = {0, 32, kTooLarge - 9, kTooLarge - 9};
     },
     "input", "an image of input 0x32x2147483639x2147483639 of f32 takes more than 2^62 bytes"},
    {"OutputImageBytesWithoutImages",
     [](ConvSpec& s) {
       s.input = {0, 1, 1 << 20, 1 << 20};
       s.weight = {1 << 24, 1, 1, 1};
     },
     "output", "an image of output 0x16777216x"},
    {"FilterBytes",
     [](ConvSpec& s) {
       s.dilation = 1;
       s.input = {1, 32, 9000, 5000};
       s.weight = {kTooLarge - 1, 32, 9000, 5000};
     },
     "weight", "weight 2147483647x32x9000x5000 of f32 takes more than 2^62 bytes"},
    {"OutputBytes",
     [](ConvSpec& s) {
       s.input = {kTooLarge - 1, 1, 1, 1};
       s.weight = {kTooLarge - 1, 1, 1, 1};
     },
     "output", "output 2147483647x2147483647x5x9 of f32 takes more than 2^62 bytes"},
    {"OutputBytesOfItsOwnType",
     [](ConvSpec& s) {
       s.dtype = DataType::f16;
       s.output_dtype = OutputType::f32;
       s.input = {std::int64_t{1} << 30, 1, 1, 1};
       s.weight = {std::int64_t{1} << 28, 1, 1, 1};
     },
     "output", "output 1073741824x268435456x5x9 of f32 takes more than 2^62 bytes"},
};

class InvalidSpec : public testing::TestWithParam<Mutation> {};

TEST_P(InvalidSpec, NamesFieldValueAndRule) {
  const Mutation& mutation = GetParam();
  ConvSpec spec = headline_c();
  validate(spec);
  mutation.apply(spec);
  const Thrown thrown = thrown_by([&] { validate(spec); });
  EXPECT_EQ(thrown.field, mutation.field);
  EXPECT_EQ(thrown.code, ErrorCode::invalid_spec);
  EXPECT_NE(thrown.message.find(mutation.message), std::string::npos) << thrown.message;
  EXPECT_THROW(output_shape(spec), SpecError);
  EXPECT_THROW(canonical(spec), SpecError);
}

INSTANTIATE_TEST_SUITE_P(Spec, InvalidSpec, testing::ValuesIn(kMutations),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(Validate, GradientsHaveTheForwardsShapes) {
  ConvSpec spec = headline_c();
  for (const Operation operation : {Operation::data_gradient, Operation::weight_gradient}) {
    spec.operation = operation;
    EXPECT_NO_THROW(validate(spec));
    EXPECT_EQ(output_shape(spec), (TensorShape{8, 64, 508, 496}));
    EXPECT_EQ(canonical(spec), spec);
  }
}

TEST(Validate, FilterLargerThanInputShowsBothSizes) {
  ConvSpec spec = headline_c();
  spec.input = {1, 32, 2, 6};
  spec.padding = {1, 2};
  const std::string message = thrown_by([&] { validate(spec); }).message;
  EXPECT_EQ(message.rfind("weight 5x9 with dilation (2,3) spans 9x25, larger than the padded input 4x10", 0), 0u)
      << message;
}

TEST(Validate, LargestExtentsDoNotOverflow) {
  ConvSpec spec;
  const std::int64_t most = kTooLarge - 1;
  spec.input = {1, 1, most, 1};
  spec.weight = {1, 1, 2, 1};
  spec.dilation = {most - 1, 1};
  spec.stride = most;
  EXPECT_EQ(output_shape(spec), (TensorShape{1, 1, 1, 1}));
  spec.weight.r = most;
  spec.dilation.h = most;
  EXPECT_EQ(thrown_by([&] { validate(spec); }).field, "weight");
}

TEST(Validate, TensorOfExactlyTheLimitPasses) {
  ConvSpec spec;
  spec.dtype = DataType::f16;
  const std::int64_t most = std::int64_t{1} << 30;
  spec.input = {most, 1, most, 2};
  spec.weight = {1, 1, 1, 1};
  EXPECT_NO_THROW(validate(spec));  // 2^61 elements of 2 bytes
  spec.input.w = 3;
  EXPECT_EQ(thrown_by([&] { validate(spec); }).field, "input");
}

template <typename T>
void change(T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    value = !value;
  } else if constexpr (std::is_enum_v<T>) {
    value = static_cast<T>(static_cast<int>(value) + 1);
  } else {
    value = value + T{1};
  }
}

/// `spec` with its index-th number changed; false if it has not that many.
bool change_field(ConvSpec& spec, int index) {
  int at = 0;
  bool changed = false;
  codegen::for_each_field(spec, [&](std::string_view, auto&... values) {
    const auto visit = [&](auto& value) {
      if (at++ != index) return;
      change(value);
      changed = true;
    };
    (visit(values), ...);
  });
  return changed;
}

TEST(SpecFields, EveryNumberChangesEqualityHashAndText) {
  ConvSpec base = headline_c();
  base.math = MathMode::ieee;
  std::set<std::size_t> hashes{hash_value(base)};
  std::set<std::string> texts{to_string(base)};
  int count = 0;
  for (ConvSpec spec = base; change_field(spec, count); spec = base) {
    ++count;
    EXPECT_FALSE(spec == base) << to_string(spec);
    EXPECT_TRUE(hashes.insert(hash_value(spec)).second) << to_string(spec);
    EXPECT_TRUE(texts.insert(to_string(spec)).second) << to_string(spec);
    EXPECT_EQ(parse_spec(to_string(spec)), spec);
  }
  // 4 + 4 extents, 2 strides, 4 paddings, 2 dilations, groups, 7 enums, 6 of the epilogue, alignment.
  EXPECT_EQ(count, 31);
}

TEST(SpecFields, EqualSpecsHashAlike) {
  ConvSpec positive = headline_c(), negative = headline_c();
  positive.epilogue.clamp_min = 0.0f;
  negative.epilogue.clamp_min = -0.0f;
  ASSERT_EQ(positive, negative);
  EXPECT_EQ(hash_value(positive), hash_value(negative));
}

TEST(OutputType, IsThatOfTheOtherTensorsUnlessNamed) {
  ConvSpec spec;
  spec.dtype = DataType::bf16;
  EXPECT_EQ(output_type(spec), DataType::bf16);
  spec.output_dtype = OutputType::f32;
  EXPECT_EQ(output_type(spec), DataType::f32);
  spec.output_dtype = OutputType::f16;
  EXPECT_EQ(output_type(spec), DataType::f16);
  spec.output_dtype = OutputType::bf16;
  EXPECT_EQ(output_type(spec), DataType::bf16);
}

/// Refused by what plans, with this message.
void expect_unsupported(const ConvSpec& spec, const std::string& field, const std::string& message) {
  const Target target = parse_target("sm_90a");
  for (const auto& plan : {std::function<void()>([&] { codegen::lower(canonical(spec)); }),
                           std::function<void()>([&] { codegen::make_plan(spec, target); }),
                           std::function<void()>([&] { codegen::enumerate_plans(spec, target, 1); })}) {
    const Thrown thrown = thrown_by(plan);
    EXPECT_EQ(thrown.code, ErrorCode::unsupported);
    EXPECT_EQ(thrown.field, field);
    EXPECT_EQ(thrown.message.rfind(message, 0), 0u) << thrown.message;
  }
}

TEST(Plan, HasKernelsOfEveryOperation) {
  const Target target = parse_target("sm_90a");
  ConvSpec spec = headline_c();
  for (const Operation operation : {Operation::forward, Operation::data_gradient, Operation::weight_gradient}) {
    spec.operation = operation;
    EXPECT_FALSE(codegen::make_plan(spec, target).kernels.empty()) << to_string(operation);
  }
  spec.input.n = 0;  // dw is then zero, and dx and y have no elements
  EXPECT_FALSE(codegen::make_plan(spec, target).kernels.empty());
  spec.operation = Operation::data_gradient;
  EXPECT_TRUE(codegen::make_plan(spec, target).kernels.empty());
}

TEST(Plan, RefusesOtherOutputTypes) {
  ConvSpec spec = headline_c();
  spec.dtype = DataType::bf16;
  spec.output_dtype = OutputType::f32;
  expect_unsupported(spec, "output_dtype", "output_dtype is f32, must be same or bf16: ");
  spec.input.n = 0;  // nothing to compute, and still not supported
  expect_unsupported(spec, "output_dtype", "output_dtype is f32, must be same or bf16: ");
  spec.input.n = 8;
  spec.operation = Operation::data_gradient;
  expect_unsupported(spec, "output_dtype", "output_dtype is f32, must be same or bf16: ");
  spec.operation = Operation::weight_gradient;
  EXPECT_EQ(codegen::make_plan(spec, parse_target("sm_90a")).spec.output_dtype, OutputType::f32);
  spec.output_dtype = OutputType::f16;
  expect_unsupported(spec, "output_dtype", "output_dtype is f16, must be same, f32 or bf16: ");
  spec.output_dtype = OutputType::bf16;
  EXPECT_EQ(codegen::make_plan(spec, parse_target("sm_90a")).spec.output_dtype, OutputType::same);
}

TEST(Work, CountsEveryTensorOnce) {
  ConvSpec spec = headline_c();
  const double outputs = 8.0 * 64 * 508 * 496;
  const double tensors = 8.0 * 32 * 512 * 512 + 64.0 * 32 * 45 + outputs;
  EXPECT_EQ(codegen::work(spec).flop, 2 * outputs * 32 * 45);
  EXPECT_EQ(codegen::work(spec).bytes, 4 * tensors);
  spec.epilogue.bias = spec.epilogue.residual = true;
  spec.dtype = DataType::bf16;
  EXPECT_EQ(codegen::work(spec).bytes, 2 * (tensors + 64 + outputs));
  spec.input.n = 0;
  EXPECT_EQ(codegen::work(spec).flop, 0);
}

}  // namespace
}  // namespace jitconv
