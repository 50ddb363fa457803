// The reference of the gradients: worked out by hand, against differences of the forward reference, and against the
// identities that define them: <conv(x), dy> = <x, data gradient of dy> = <w, weight gradient of x and dy>.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "support/random_specs.h"
#include "tools/check/bound.h"
#include "tools/check/reference.h"
#include "tools/check/tensors.h"

namespace jitconv::check {
namespace {

using Values = std::vector<double>;

Values values_of(const std::vector<Expected>& results) {
  Values values;
  for (const Expected& result : results) values.push_back(result.y);
  return values;
}

ConvSpec with(ConvSpec spec, Operation operation) {
  spec.operation = operation;
  return spec;
}

/// A row of five, a filter of two taps that are three apart, every second output: pixels -1 and 2, 1 and 4, 3 and 6.
ConvSpec row_spec(Operation operation) {
  ConvSpec spec;
  spec.operation = operation;
  spec.input = {1, 1, 1, 5};
  spec.weight = {1, 1, 1, 2};
  spec.stride = {1, 2};
  spec.dilation = {1, 3};
  spec.padding = {0, 0, 1, 2};
  return spec;
}

TEST(DataGradient, ByHand) {
  const std::vector<float> dy = {1, 10, 100}, w = {2, 3};
  // Pixel 0 meets no tap.
  const std::vector<Expected> results = reference(row_spec(Operation::data_gradient), {{}, w, {}, {}, dy});
  EXPECT_EQ(values_of(results), (Values{0, 20, 3, 200, 30}));
  EXPECT_EQ(results[0].terms, 0);
  EXPECT_EQ(results[1].terms, 1);
}

TEST(DataGradient, OverlappingWindowsByHand) {
  ConvSpec spec;
  spec.operation = Operation::data_gradient;
  spec.input = {1, 1, 1, 4};
  spec.weight = {1, 1, 1, 3};
  spec.padding = {0, 0, 0, 1};
  const std::vector<float> dy = {1, -10, 100}, w = {1, 2, 3};
  const std::vector<Expected> results = reference(spec, {{}, w, {}, {}, dy});
  EXPECT_EQ(values_of(results), (Values{1, 2 - 10, 3 - 20 + 100, -30 + 200}));
  EXPECT_EQ(results[2].magnitude, 123);
  EXPECT_EQ(results[2].terms, 3);
}

TEST(DataGradient, LayoutsGroupsAndEpilogueByHand) {
  ConvSpec spec;
  spec.operation = Operation::data_gradient;
  spec.input = {1, 4, 1, 2};
  spec.weight = {2, 2, 1, 1};  // a filter for each of two groups of two channels
  spec.groups = 2;
  spec.epilogue.bias = spec.epilogue.residual = true;
  spec.epilogue.activation = Activation::relu;
  const std::vector<float> planes = {1, 2, 10, 20}, pixels = {1, 10, 2, 20}, w = {1, 2, 3, -4}, bias = {1, 0, 0, 5};
  const std::vector<float> zeros = {0, 0, 0, 0, 0, 0, 0, 0}, first = {100, 0, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(values_of(reference(spec, {{}, w, bias, zeros, planes})), (Values{2, 3, 2, 4, 30, 60, 0, 0}));
  spec.output_layout = Layout::nhwc;  // of dy
  EXPECT_EQ(values_of(reference(spec, {{}, w, bias, zeros, pixels})), (Values{2, 3, 2, 4, 30, 60, 0, 0}));
  spec.input_layout = Layout::nhwc;  // of dx and the residual
  const std::vector<Expected> results = reference(spec, {{}, w, bias, first, pixels});
  EXPECT_EQ(values_of(results), (Values{102, 2, 30, 0, 3, 4, 60, 0}));
  EXPECT_EQ(results[0].addends, 101);
  EXPECT_EQ(results[0].magnitude, 1);
  EXPECT_EQ(results[7].z, -75);
}

TEST(WeightGradient, ByHand) {
  const std::vector<float> x = {1, 2, 3, 4, 5}, dy = {1, 10, 100};
  const std::vector<Expected> results = reference(row_spec(Operation::weight_gradient), {x, {}, {}, {}, dy});
  EXPECT_EQ(values_of(results), (Values{2 * 10 + 4 * 100, 3 * 1 + 5 * 10}));
  EXPECT_EQ(results[0].terms, 2);
}

TEST(WeightGradient, GroupsResidualAndChannelSumsByHand) {
  ConvSpec spec;
  spec.operation = Operation::weight_gradient;
  spec.input = {2, 2, 1, 1};
  spec.weight = {4, 1, 1, 1};
  spec.groups = 2;
  spec.epilogue.bias = spec.epilogue.residual = true;
  const std::vector<float> x = {1, 2, 3, 4}, dy = {1, 10, 100, 1000, -2, 20, 200, 2000}, residual = {7, 0, 0, -1};
  const std::vector<Expected> results = reference(spec, {x, {}, {}, residual, dy});
  EXPECT_EQ(values_of(results), (Values{1 - 6 + 7, 10 + 60, 200 + 800, 2000 + 8000 - 1, -1, 30, 300, 3000}));
  EXPECT_EQ(results[0].addends, 7);
  EXPECT_EQ(results[4].magnitude, 3);
  EXPECT_EQ(results[4].addends, 0);
  EXPECT_EQ(results[4].terms, 2);
}

TEST(WeightGradient, OfNoImagesIsZero) {
  ConvSpec spec;
  spec.operation = Operation::weight_gradient;
  spec.input = {0, 1, 2, 2};
  spec.weight = {1, 1, 1, 2};
  spec.epilogue.bias = spec.epilogue.residual = true;
  EXPECT_EQ(reduction_length(spec), 0);
  const std::vector<float> residual = {3, 4};
  const std::vector<Expected> results = reference(spec, {{}, {}, {}, residual, {}});
  EXPECT_EQ(values_of(results), (Values{3, 4, 0}));
  for (const DataKind kind : {DataKind::exact, DataKind::random, DataKind::positive}) {
    const std::vector<std::int64_t> positions = sample_positions(spec, 10, 1);
    const std::vector<Expected> expected = reference_at(spec, make_data(spec, kind, 1), positions);
    std::vector<float> actual;
    for (const Expected& one : expected) actual.push_back(static_cast<float>(one.y));
    EXPECT_TRUE(compare(spec, kind, positions, expected, actual).passed());
    actual[2] = 1;  // a bias gradient of nothing
    EXPECT_FALSE(compare(spec, kind, positions, expected, actual).passed());
  }
}

/// The sum of products of two tensors' elements.
double inner(const Values& a, const Operand& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[static_cast<std::int64_t>(i)];
  return sum;
}

/// Without epilogue and of small integers, so that every sum here is exact.
ConvSpec bare(ConvSpec spec) {
  spec.epilogue = {};
  spec.output_dtype = OutputType::same;
  return spec;
}

Data small_integers(const ConvSpec& spec, std::uint64_t seed) {
  Data data = make_data(spec, DataKind::exact, seed);
  for (Fill* fill : {&data.x, &data.w, &data.dy}) fill->range = 9, fill->keep = 1u << 31;
  return data;
}

RC_GTEST_PROP(GradientProperty, AreAdjointToTheConvolution, ()) {
  const ConvSpec forward = bare(*test::valid_specs(test::kTinyLimits));
  const Data data = small_integers(forward, *rc::gen::arbitrary<std::uint64_t>());
  const double product = inner(values_of(reference(forward, data)), data.dy);
  RC_ASSERT(product == inner(values_of(reference(with(forward, Operation::data_gradient), data)), data.x));
  RC_ASSERT(product == inner(values_of(reference(with(forward, Operation::weight_gradient), data)), data.w));
}

/// What the sum of y * dy changes by if one element of an operand grows by one: linear, so that a step of any size
/// gives the derivative.
double difference(const ConvSpec& forward, const Data& data, Operand Operands::*operand, std::vector<float> values,
                  std::size_t element) {
  Operands operands(data);
  operands.*operand = values;
  const double before = inner(values_of(reference(forward, operands)), data.dy);
  values[element] += 1;
  operands.*operand = values;
  return inner(values_of(reference(forward, operands)), data.dy) - before;
}

RC_GTEST_PROP(GradientProperty, AreDifferencesOfTheConvolution, ()) {
  ConvSpec forward = bare(*test::valid_specs(test::kTinyLimits));
  forward.input.n = std::max<std::int64_t>(1, forward.input.n);
  const Data data = small_integers(forward, *rc::gen::arbitrary<std::uint64_t>());
  for (const auto& [operation, operand, fill, count] :
       {std::tuple(Operation::data_gradient, &Operands::x, &data.x, element_count(forward.input)),
        std::tuple(Operation::weight_gradient, &Operands::w, &data.w, element_count(forward.weight))}) {
    const Values gradient = values_of(reference(with(forward, operation), data));
    RC_ASSERT(gradient.size() == static_cast<std::size_t>(count));
    const auto element = static_cast<std::size_t>(*rc::gen::inRange<std::int64_t>(0, count));
    RC_ASSERT(gradient[element] == difference(forward, data, operand, check::values_of(*fill, count), element));
  }
}

// The bound's roundings are those of a sum of reduction_length() terms at most, and some element has nearly as many.
RC_GTEST_PROP(GradientProperty, HaveNoMoreTermsThanTheReductionIsLong, ()) {
  const ConvSpec spec = *test::valid_operations(test::kTinyLimits);
  for (const Expected& one : reference(spec, make_data(spec, DataKind::exact, 3)))
    RC_ASSERT(one.terms <= reduction_length(spec));
}

TEST(ReductionLength, OfADataGradientIsWhatOnePixelCanMeet) {
  const auto most_terms = [](const ConvSpec& spec) {
    std::int64_t most = 0;
    for (const Expected& one : reference(spec, make_data(spec, DataKind::exact, 3))) most = std::max(most, one.terms);
    return most;
  };
  for (const char* text :
       {"input=1,2,20,20 weight=3,2,3,3", "input=1,2,20,20 weight=3,2,3,5 stride=2",
        "input=1,2,30,30 weight=6,1,5,4 stride=4,6 dilation=2,4 groups=2",
        "input=1,2,30,30 weight=3,2,5,4 stride=3 dilation=2", "input=1,1,30,30 weight=1,1,1,1 stride=5"}) {
    const ConvSpec spec = with(parse_spec(text), Operation::data_gradient);
    EXPECT_EQ(reduction_length(spec), most_terms(spec)) << text;
  }
}

RC_GTEST_PROP(GradientProperty, ExactDataStayExact, ()) {
  const ConvSpec spec = *test::valid_operations(test::kTinyLimits);
  for (const Expected& one : reference(spec, make_data(spec, DataKind::exact, *rc::gen::arbitrary<std::uint64_t>())))
    RC_ASSERT(one.magnitude + one.addends <= 0x1p24);
}

TEST(CheckData, ExactDataOfLongPixelSumsStayExactForBothResults) {
  for (const DataType type : {DataType::f32, DataType::f16, DataType::bf16}) {
    ConvSpec spec;
    spec.operation = Operation::weight_gradient;
    spec.input = {64, 1, 700, 700};
    spec.weight = {1, 1, 1, 1};
    spec.dtype = type;
    spec.epilogue.bias = true;
    const Data data = make_data(spec, DataKind::exact, 1);
    const double dy = std::ldexp(data.dy.keep, -31) * (1 + data.dy.range) / 2, x = (1.0 + data.x.range) / 2;
    const double length = static_cast<double>(reduction_length(spec));
    EXPECT_LE(length * dy, 0x1p24) << to_string(type);
    EXPECT_LE(length * dy * x, 0x1p24) << to_string(type);
    EXPECT_GE(length * dy, 500) << to_string(type);
  }
}

TEST(Bound, OfAnFp32ResultHasNoOutputRounding) {
  ConvSpec spec;
  spec.operation = Operation::weight_gradient;
  spec.input = {4, 8, 9, 9};
  spec.weight = {8, 8, 3, 3};
  spec.dtype = DataType::bf16;
  spec.math = MathMode::ieee;
  Expected expected;
  expected.y = expected.z = expected.magnitude = 1;
  EXPECT_GT(error_bound(spec, expected), 0x1p-8);
  spec.output_dtype = OutputType::f32;
  const double n = 4 * 7 * 7 + 2;
  EXPECT_NEAR(error_bound(spec, expected), n * 0x1p-24, n * 0x1p-24 * 1e-4);
}

TEST(ElementName, NamesIndicesOfEachResult) {
  ConvSpec spec = parse_spec("input=2,4,5,6 weight=3,4,2,2 input_layout=nhwc bias");
  EXPECT_EQ(element_name(spec, 1), "y[n=0, k=0, p=0, q=1]");
  spec.operation = Operation::data_gradient;
  EXPECT_EQ(element_name(spec, 4 * 6 * 5 + 4 + 3), "dx[n=1, c=3, h=0, w=1]");
  spec.operation = Operation::weight_gradient;
  EXPECT_EQ(element_name(spec, 16 + 4 + 3), "dw[k=1, c=1, r=1, s=1]");
  EXPECT_EQ(element_name(spec, 48 + 2), "db[k=2]");
  EXPECT_EQ(position_count(spec), 51);
}

TEST(SamplePositions, OfAWeightGradientAreOfBothResults) {
  ConvSpec spec = parse_spec("input=1,64,64,64 weight=500,64,3,3 bias operation=weight_gradient");
  const std::int64_t elements = 500 * 64 * 9;
  const std::vector<std::int64_t> positions = sample_positions(spec, 400, 1);
  EXPECT_TRUE(std::is_sorted(positions.begin(), positions.end()));
  EXPECT_EQ(positions.front(), 0);
  EXPECT_EQ(positions.back(), elements + 499);
  const auto sums =
      std::count_if(positions.begin(), positions.end(), [&](std::int64_t one) { return one >= elements; });
  EXPECT_GE(sums, 40);
  EXPECT_LE(sums, 50);
  EXPECT_TRUE(std::binary_search(positions.begin(), positions.end(), elements - 1));
  EXPECT_TRUE(std::binary_search(positions.begin(), positions.end(), elements));
}

TEST(Compare, FindsAWrongChannelSum) {
  ConvSpec spec = parse_spec("input=2,3,8,8 weight=5,3,3,3 bias operation=weight_gradient dtype=bf16 output_dtype=f32");
  for (const DataKind kind : {DataKind::exact, DataKind::random}) {
    const std::vector<std::int64_t> positions = sample_positions(spec, 1 << 20, 1);
    const std::vector<Expected> expected = reference_at(spec, make_data(spec, kind, 4), positions);
    std::vector<float> actual;
    for (const Expected& one : expected) actual.push_back(static_cast<float>(one.y));
    EXPECT_TRUE(compare(spec, kind, positions, expected, actual).passed());
    actual[actual.size() - 2] += 1.0f;
    const Comparison wrong = compare(spec, kind, positions, expected, actual);
    EXPECT_EQ(wrong.wrong, 1);
    EXPECT_EQ(wrong.first_wrong.rfind("db[k=3] = ", 0), 0u) << wrong.first_wrong;
  }
}

TEST(Tensors, AreThoseOfTheOperation) {
  const auto names = [](const ConvSpec& spec) {
    std::string text;
    for (const Input& input : inputs_of(spec))
      text += std::string(input.name) + ' ' + std::to_string(input.bytes()) + ' ';
    for (const Result& result : results_of(spec))
      text += std::string("> ") + result.name + ' ' + std::to_string(result.bytes()) + ' ';
    return text;
  };
  ConvSpec spec = parse_spec("input=2,4,5,6 weight=3,4,2,2 dtype=f16 bias residual");  // y is 2,3,4,5
  EXPECT_EQ(names(spec), "x 480 w 96 bias 6 residual 240 > y 240 ");
  spec.operation = Operation::data_gradient;
  EXPECT_EQ(names(spec), "dy 240 w 96 bias 8 residual 480 > dx 480 ");
  spec.operation = Operation::weight_gradient;
  EXPECT_EQ(names(spec), "x 480 dy 240 residual 96 > dw 96 > db 6 ");
  spec.output_dtype = OutputType::f32;
  EXPECT_EQ(names(spec), "x 480 dy 240 residual 192 > dw 192 > db 12 ");
  EXPECT_EQ(tensor_bytes(spec), 480 + 240 + 192 + 192 + 12);
  spec.epilogue = {};
  spec.input.n = 0;
  EXPECT_EQ(names(spec), "x 0 dy 0 > dw 192 ");
}

}  // namespace
}  // namespace jitconv::check
