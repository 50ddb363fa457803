// The reference against results worked out by hand, against a second algorithm, and against identities of convolution.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <set>

#include "support/random_specs.h"
#include "tools/check/reference.h"

namespace jitconv::check {
namespace {

std::vector<double> outputs_of(const std::vector<Expected>& results) {
  std::vector<double> values;
  for (const Expected& result : results) values.push_back(result.y);
  return values;
}

TEST(Reference, ByHand) {
  ConvSpec spec;
  spec.input = {1, 1, 3, 3};
  spec.weight = {1, 1, 2, 2};
  const std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8, 9}, w = {1, 10, 100, 1000};
  EXPECT_EQ(outputs_of(reference(spec, {x, w, {}, {}})), (std::vector<double>{5421, 6532, 8754, 9865}));
}

TEST(Reference, PaddingStrideDilationByHand) {
  ConvSpec spec;
  spec.input = {1, 1, 1, 5};
  spec.weight = {1, 1, 1, 2};
  spec.stride = {1, 2};
  spec.dilation = {1, 3};
  spec.padding = {0, 0, 1, 2};
  const std::vector<float> x = {1, 2, 3, 4, 5}, w = {1, 10};
  // Columns -1 and 2, 1 and 4, 3 and 6.
  const std::vector<Expected> results = reference(spec, {x, w, {}, {}});
  EXPECT_EQ(outputs_of(results), (std::vector<double>{30, 52, 4}));
  EXPECT_EQ(results[0].terms, 1);
  EXPECT_EQ(results[1].terms, 2);
  EXPECT_EQ(results[1].magnitude, 52);
}

TEST(Reference, LayoutsAndGroupsByHand) {
  ConvSpec spec;
  spec.input = {1, 2, 1, 2};
  spec.weight = {4, 1, 1, 1};
  spec.groups = 2;
  const std::vector<float> planes = {1, 2, 10, 20}, pixels = {1, 10, 2, 20}, w = {1, -1, 3, 5};
  const std::vector<double> expected_planes = {1, 2, -1, -2, 30, 60, 50, 100};
  const std::vector<double> expected_pixels = {1, -1, 30, 50, 2, -2, 60, 100};
  EXPECT_EQ(outputs_of(reference(spec, {planes, w, {}, {}})), expected_planes);
  spec.input_layout = Layout::nhwc;
  EXPECT_EQ(outputs_of(reference(spec, {pixels, w, {}, {}})), expected_planes);
  spec.output_layout = Layout::nhwc;
  EXPECT_EQ(outputs_of(reference(spec, {pixels, w, {}, {}})), expected_pixels);
}

TEST(Reference, EpilogueByHand) {
  ConvSpec spec;
  spec.input = {1, 1, 1, 2};
  spec.weight = {2, 1, 1, 1};
  spec.epilogue.bias = spec.epilogue.residual = true;
  spec.epilogue.activation = Activation::relu;
  const std::vector<float> x = {1, 2}, w = {3, -3}, bias = {10, -20}, residual = {1, -100, 30, 4};
  const std::vector<Expected> results = reference(spec, {x, w, bias, residual});
  EXPECT_EQ(outputs_of(results), (std::vector<double>{14, 0, 7, 0}));
  EXPECT_EQ(results[1].z, -84);
  EXPECT_EQ(results[1].magnitude, 6);
  EXPECT_EQ(results[1].addends, 110);
}

TEST(Reference, SkippedTapsDoNotMultiplyInfinity) {
  ConvSpec spec;
  spec.input = {1, 1, 1, 1};
  spec.weight = {1, 1, 3, 3};
  spec.padding = 1;
  std::vector<float> w(9, INFINITY);
  w[4] = 2;
  const std::vector<float> x = {3};
  EXPECT_EQ(outputs_of(reference(spec, {x, w, {}, {}})), (std::vector<double>{6}));
}

/// Position of an element in memory, written again so as not to test the reference with itself.
std::int64_t memory_index(const TensorShape& t, Layout layout, std::int64_t n, std::int64_t c, std::int64_t h,
                          std::int64_t w) {
  return layout == Layout::nchw ? ((n * t.c + c) * t.h + h) * t.w + w : ((n * t.h + h) * t.w + w) * t.c + c;
}

/// The other way round: every input element is added into the outputs it reaches.
std::vector<double> scatter(const ConvSpec& spec, const Data& data) {
  const TensorShape y = output_shape(spec), x = spec.input;
  const WeightShape f = spec.weight;
  std::vector<double> sums(static_cast<std::size_t>(y.n * y.c * y.h * y.w));
  for (std::int64_t n = 0; n < x.n; ++n)
    for (std::int64_t c = 0; c < x.c; ++c)
      for (std::int64_t h = 0; h < x.h; ++h)
        for (std::int64_t w = 0; w < x.w; ++w) {
          const double value = static_cast<double>(data.x(memory_index(x, spec.input_layout, n, c, h, w)));
          for (std::int64_t r = 0; r < f.r; ++r)
            for (std::int64_t s = 0; s < f.s; ++s) {
              const std::int64_t ph = h + spec.padding.top - r * spec.dilation.h;
              const std::int64_t pw = w + spec.padding.left - s * spec.dilation.w;
              if (ph < 0 || pw < 0 || ph % spec.stride.h != 0 || pw % spec.stride.w != 0) continue;
              const std::int64_t p = ph / spec.stride.h, q = pw / spec.stride.w;
              if (p >= y.h || q >= y.w) continue;
              const std::int64_t group = c / f.c, per_group = f.k / spec.groups;
              for (std::int64_t k = group * per_group; k < (group + 1) * per_group; ++k) {
                const std::int64_t at = ((k * f.c + c % f.c) * f.r + r) * f.s + s;
                sums[static_cast<std::size_t>(memory_index(y, spec.output_layout, n, k, p, q))] +=
                    value * static_cast<double>(data.w(at));
              }
            }
        }
  return sums;
}

RC_GTEST_PROP(ReferenceProperty, EqualsScatteringTheInput, ()) {
  ConvSpec spec = *test::valid_specs(test::kTinyLimits);
  spec.epilogue = {};
  const Data data = make_data(spec, DataKind::exact, *rc::gen::arbitrary<std::uint64_t>());
  RC_ASSERT(outputs_of(reference(spec, data)) == scatter(spec, data));
}

RC_GTEST_PROP(ReferenceProperty, ValuesAndGeneratorsGiveTheSame, ()) {
  const ConvSpec spec = *test::valid_specs(test::kTinyLimits);
  const Data data = make_data(spec, DataKind::random, 9);
  const std::vector<float> x = values_of(data.x, element_count(spec.input));
  const std::vector<float> w = values_of(data.w, element_count(spec.weight));
  const std::vector<float> bias = values_of(data.bias, spec.weight.k);
  const std::vector<float> residual = values_of(data.residual, element_count(output_shape(spec)));
  RC_ASSERT(outputs_of(reference(spec, data)) == outputs_of(reference(spec, {x, w, bias, residual})));
}

RC_GTEST_PROP(ReferenceProperty, SamplesAreTheFullResult, ()) {
  const ConvSpec spec = *test::valid_specs(test::kTinyLimits);
  const Data data = make_data(spec, DataKind::random, 10);
  const std::vector<Expected> all = reference(spec, data);
  const std::vector<std::int64_t> positions = sample_positions(spec, 60, 1);
  const std::vector<Expected> some = reference_at(spec, data, positions);
  RC_ASSERT(some.size() == positions.size());
  for (std::size_t i = 0; i < some.size(); ++i) {
    RC_ASSERT(some[i].y == all[static_cast<std::size_t>(positions[i])].y);
  }
}

TEST(SamplePositions, AreDistinctInRangeAndIncludeTheEnds) {
  ConvSpec spec;
  spec.input = {16, 64, 1024, 1024};
  spec.weight = {128, 64, 1, 1};
  const std::int64_t total = element_count(output_shape(spec));
  ASSERT_EQ(total, std::int64_t{1} << 31);
  const std::vector<std::int64_t> positions = sample_positions(spec, 5'000, 2);
  EXPECT_GE(positions.size(), 4'900u);
  EXPECT_LE(positions.size(), 5'000u);
  EXPECT_EQ(std::set<std::int64_t>(positions.begin(), positions.end()).size(), positions.size());
  EXPECT_EQ(positions.front(), 0);
  EXPECT_EQ(positions.back(), total - 1);
  std::int64_t row_ends = 0, batches = 0;
  std::set<std::int64_t> seen;
  for (const std::int64_t position : positions) {
    const TensorShape at = coordinates(spec, position);
    row_ends += at.w == 1023 ? 1 : 0;
    seen.insert(at.n);
  }
  batches = static_cast<std::int64_t>(seen.size());
  EXPECT_GT(row_ends, 400);
  EXPECT_EQ(batches, 16);
  EXPECT_NE(positions, sample_positions(spec, 5'000, 3));
}

TEST(SamplePositions, AllOfASmallOutputAndNoneOfAnEmptyOne) {
  ConvSpec spec;
  spec.input = {1, 1, 4, 5};
  spec.weight = {3, 1, 1, 1};
  EXPECT_EQ(sample_positions(spec, 100, 1).size(), 60u);
  spec.input.n = 0;
  EXPECT_TRUE(sample_positions(spec, 100, 1).empty());
}

TEST(Coordinates, InvertMemoryOrder) {
  ConvSpec spec;
  spec.input = {2, 3, 5, 7};
  spec.weight = {4, 3, 2, 2};
  for (const Layout layout : {Layout::nchw, Layout::nhwc}) {
    spec.output_layout = layout;
    const TensorShape y = output_shape(spec);
    for (std::int64_t position = 0; position < element_count(y); ++position) {
      const TensorShape at = coordinates(spec, position);
      ASSERT_EQ(memory_index(y, layout, at.n, at.c, at.h, at.w), position);
    }
  }
}

TEST(Activate, KnownValues) {
  Epilogue epilogue;
  const auto at = [&epilogue](Activation activation, double x) {
    epilogue.activation = activation;
    return activate(epilogue, x);
  };
  epilogue.slope = 0.25f;
  epilogue.clamp_min = -1;
  epilogue.clamp_max = 2;
  EXPECT_EQ(at(Activation::none, -3), -3);
  EXPECT_EQ(at(Activation::relu, -3), 0);
  EXPECT_EQ(at(Activation::relu, 3), 3);
  EXPECT_EQ(at(Activation::leaky_relu, -4), -1);
  EXPECT_EQ(at(Activation::leaky_relu, 4), 4);
  EXPECT_NEAR(at(Activation::gelu_erf, 1), 0.8413447460685429, 1e-15);
  EXPECT_NEAR(at(Activation::gelu_erf, -1), -0.15865525393145707, 1e-15);
  EXPECT_NEAR(at(Activation::gelu_tanh, 1), 0.8411919906082768, 1e-15);
  EXPECT_NEAR(at(Activation::silu, 1), 0.7310585786300049, 1e-15);
  EXPECT_NEAR(at(Activation::sigmoid, -2), 0.11920292202211755, 1e-15);
  EXPECT_NEAR(at(Activation::tanh, 0.5), 0.46211715726000973, 1e-15);
  EXPECT_EQ(at(Activation::hardswish, -4), 0);
  EXPECT_EQ(at(Activation::hardswish, 1), 4.0 / 6);
  EXPECT_EQ(at(Activation::hardswish, 5), 5);
  EXPECT_EQ(at(Activation::clamp, -9), -1);
  EXPECT_EQ(at(Activation::clamp, 9), 2);
  EXPECT_EQ(at(Activation::silu, -1e4), 0);
}

}  // namespace
}  // namespace jitconv::check
