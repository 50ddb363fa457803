// The check of gradients with an activation: its derivatives against differences of the activations, their errors in
// fp32, the reference by hand, and data that lie on both sides of the bends.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "codegen/spec_fields.h"
#include "support/random_specs.h"
#include "tools/check/activation_gradient.h"
#include "tools/check/bound.h"
#include "tools/check/number.h"
#include "tools/check/reference.h"
#include "tools/check/tensors.h"

namespace jitconv::check {
namespace {

ConvSpec with(Activation activation) {
  ConvSpec spec;
  spec.operation = Operation::data_gradient;
  spec.input = {2, 3, 9, 9};
  spec.weight = {4, 3, 3, 3};
  spec.dy_activation = activation;
  spec.epilogue.slope = 0.25f;
  spec.epilogue.clamp_min = -2;
  spec.epilogue.clamp_max = 5;
  return spec;
}

std::vector<Activation> all_activations() {
  std::vector<Activation> all;
  for (std::size_t i = 1; i < codegen::kActivationNames.size(); ++i) all.push_back(static_cast<Activation>(i));
  return all;
}

/// Whether the derivative is computed from the activation's result.
bool saves_result(Activation activation) {
  return activation == Activation::relu || activation == Activation::leaky_relu || activation == Activation::clamp;
}

TEST(ActivationGradient, IsTheDifferenceOfTheActivation) {
  constexpr double kStep = 1e-5;
  for (const Activation activation : all_activations()) {
    const ConvSpec spec = with(activation);
    Epilogue forward = spec.epilogue;
    forward.activation = activation;
    for (double z = -8.0137; z < 8; z += 0.0173) {
      const double difference = (activate(forward, z + kStep) - activate(forward, z - kStep)) / (2 * kStep);
      const double saved = saves_result(activation) ? activate(forward, z) : z;
      ASSERT_NEAR(activation_gradient(spec, 3, saved).value, 3 * difference, 1e-8) << to_string(activation) << " " << z;
    }
  }
}

TEST(ActivationGradient, AtBendsAndForNaN) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto of = [](Activation activation, double saved) { return activation_gradient(with(activation), 2, saved); };
  EXPECT_EQ(of(Activation::relu, 0).value, 0);
  EXPECT_TRUE(of(Activation::relu, 0).is_masked);
  EXPECT_EQ(of(Activation::relu, nan).value, 2);
  EXPECT_EQ(of(Activation::leaky_relu, 0).value, 0.5);
  EXPECT_FALSE(of(Activation::leaky_relu, 0).is_masked);
  EXPECT_EQ(of(Activation::leaky_relu, nan).value, 0.5);
  EXPECT_EQ(of(Activation::clamp, -2).value, 0);
  EXPECT_EQ(of(Activation::clamp, 5).value, 0);
  EXPECT_EQ(of(Activation::clamp, 4.99).value, 2);
  EXPECT_EQ(of(Activation::clamp, nan).value, 2);
  EXPECT_TRUE(of(Activation::hardswish, -3).is_masked);
  EXPECT_EQ(of(Activation::hardswish, 3).value, 2);
  EXPECT_EQ(of(Activation::hardswish, nan).value, 2);
  for (const Activation activation :
       {Activation::gelu_erf, Activation::gelu_tanh, Activation::silu, Activation::sigmoid, Activation::tanh})
    EXPECT_TRUE(std::isnan(of(activation, nan).value)) << to_string(activation);
}

/// As a kernel may write them.
float in_fp32(Activation activation, float dy, float z) {
  switch (activation) {
    case Activation::gelu_erf:
      return dy * (0.5f * (1.0f + std::erf(z * 0.70710678f)) + z * (std::exp(-0.5f * z * z) * 0.39894228f));
    case Activation::gelu_tanh: {
      const float t = std::tanh(0.79788456f * (z + 0.044715f * z * z * z));
      return dy * (0.5f * (1.0f + t) + 0.5f * z * (1.0f - t * t) * (0.79788456f * (1.0f + 0.134145f * z * z)));
    }
    case Activation::silu: {
      const float s = 1.0f / (1.0f + std::exp(-z));
      return dy * (s * (1.0f + z * (1.0f - s)));
    }
    case Activation::sigmoid: {
      const float s = 1.0f / (1.0f + std::exp(-z));
      return dy * (s * (1.0f - s));
    }
    case Activation::tanh:
      return dy * (1.0f - std::tanh(z) * std::tanh(z));
    case Activation::hardswish:
      return z <= -3.0f ? 0.0f : z < 3.0f ? dy * (z / 3.0f + 0.5f) : dy;
    default:
      return z > 0 ? dy : dy * 0.3f;
  }
}

TEST(ActivationGradient, ErrorCoversFp32AndRounding) {
  for (const DataType type : {DataType::f32, DataType::f16, DataType::bf16}) {
    for (const Activation activation : all_activations()) {
      if (activation == Activation::relu || activation == Activation::clamp) continue;
      ConvSpec spec = with(activation);
      spec.dtype = type;
      spec.epilogue.slope = 0.3f;
      for (int i = -200'000; i < 200'000; ++i) {
        const float z = static_cast<float>(i) * 8.1e-5f, dy = 1.0f + static_cast<float>(i % 7) * 0.125f;
        const ActivationGradient dz = activation_gradient(spec, static_cast<double>(dy), static_cast<double>(z));
        const double actual = round_to(type, static_cast<double>(in_fp32(activation, dy, z)));
        ASSERT_LE(std::fabs(actual - dz.value), dz.error) << to_string(activation) << " " << z;
      }
    }
  }
}

// A derivative to eleven bits, as of tanh.approx, and one of another activation are outside.
TEST(ActivationGradient, ErrorCoversNoMore) {
  const ConvSpec spec = with(Activation::tanh);
  const ActivationGradient dz = activation_gradient(spec, 1, 0.5);
  EXPECT_LT(dz.error, 0x1p-12 * dz.value);
  for (const Activation activation : all_activations())
    EXPECT_LE(activation_gradient(with(activation), 1, -0.5).error, 0x1p-19) << to_string(activation);
  EXPECT_EQ(activation_gradient(with(Activation::relu), 1, 0.5).error, 0);
  EXPECT_EQ(activation_gradient(with(Activation::clamp), 1, 0.5).error, 0);
  EXPECT_EQ(activation_gradient(with(Activation::leaky_relu), 1, 0.5).error, 0);
}

TEST(ActivationGradient, ReferenceByHand) {
  ConvSpec spec;
  spec.input = {1, 1, 1, 3};
  spec.weight = {1, 1, 1, 1};
  spec.dy_activation = Activation::leaky_relu;
  spec.epilogue.slope = 0.5f;
  spec.epilogue.bias = true;
  const std::vector<float> x = {1, 2, 3}, w = {4}, bias = {7}, dy = {10, 100, 1000}, saved = {1, -1, 0};
  spec.operation = Operation::data_gradient;
  std::vector<Expected> results = reference(spec, {{}, w, bias, {}, dy, saved});
  EXPECT_EQ(results[0].y, 4 * 10 + 7);
  EXPECT_EQ(results[1].y, 4 * 50 + 7);
  EXPECT_EQ(results[2].y, 4 * 500 + 7);
  EXPECT_EQ(results[2].terms, 1);
  EXPECT_EQ(results[0].dz_error, 0);
  EXPECT_GT(results[1].dz_error, 4 * 50 * 0x1p-25);
  spec.operation = Operation::weight_gradient;
  results = reference(spec, {x, {}, {}, {}, dy, saved});
  EXPECT_EQ(results[0].y, 10 + 2 * 50 + 3 * 500);
  EXPECT_EQ(results[1].y, 560) << "db sums dz, too";
  spec.dy_activation = Activation::relu;
  results = reference(spec, {x, {}, {}, {}, dy, saved});
  EXPECT_EQ(results[0].y, 10);
  EXPECT_EQ(results[0].magnitude, 10);
  EXPECT_EQ(results[0].terms, 1) << "the others say nothing";
}

TEST(ActivationGradient, BoundGrowsByWhatDzMayBeWrong) {
  ConvSpec spec = with(Activation::silu);
  spec.math = MathMode::ieee;
  Expected expected;
  expected.y = expected.z = expected.magnitude = 1;
  const double before = error_bound(spec, expected);
  expected.dz_error = 0x1p-10;
  EXPECT_NEAR(error_bound(spec, expected), before + 0x1p-10, 0x1p-10 * 1e-4);
}

TEST(ActivationGradient, ExactDataLieOnBothSides) {
  for (const DataType type : {DataType::f32, DataType::f16, DataType::bf16}) {
    for (const Activation activation :
         {Activation::relu, Activation::leaky_relu, Activation::clamp, Activation::hardswish}) {
      ConvSpec spec = with(activation);
      spec.dtype = type;
      const Data data = make_data(spec, DataKind::exact, 9);
      std::set<double> slopes;
      int through = 0;
      for (int i = 0; i < 1000; ++i) {
        const double saved = static_cast<double>(data.saved(i));
        EXPECT_EQ(round_to(type, saved), saved);
        slopes.insert(activation_gradient(spec, 1, saved).value);
        through += activation_gradient(spec, 1, saved).is_masked ? 0 : 1;
      }
      EXPECT_GT(through, 450) << to_string(activation);
      EXPECT_TRUE(slopes.contains(1)) << to_string(activation);
      EXPECT_TRUE(slopes.contains(activation == Activation::leaky_relu ? 0.25 : 0)) << to_string(activation);
      for (const DataKind kind : {DataKind::random, DataKind::positive}) {
        const Fill saved = make_data(spec, kind, 9).saved;
        int masked = 0;
        for (int i = 0; i < 1000; ++i) {
          const double dz = activation_gradient(spec, 1, static_cast<double>(saved(i))).value;
          masked += dz == 1 ? 0 : 1;
        }
        EXPECT_GT(masked, 100) << to_string(activation);
        EXPECT_LT(masked, 900) << to_string(activation);
      }
    }
  }
  // The bends themselves.
  std::set<float> relu, clamp;
  const Fill of_relu = make_data(with(Activation::relu), DataKind::exact, 9).saved,
             of_clamp = make_data(with(Activation::clamp), DataKind::exact, 9).saved;
  for (int i = 0; i < 1000; ++i) relu.insert(of_relu(i)), clamp.insert(of_clamp(i));
  EXPECT_TRUE(relu.contains(0));
  EXPECT_TRUE(clamp.contains(-2) && clamp.contains(5));
}

TEST(ActivationGradient, ExactDataStayIntegers) {
  for (const DataType type : {DataType::f32, DataType::f16, DataType::bf16}) {
    for (const float slope : {0.125f, 0.5f, 1.0f, 8.0f}) {
      ConvSpec spec = with(Activation::leaky_relu);
      spec.dtype = type;
      spec.epilogue.slope = slope;
      spec.weight.k = 300;
      EXPECT_TRUE(has_exact_epilogue(spec));
      for (const Operation operation : {Operation::data_gradient, Operation::weight_gradient}) {
        spec.operation = operation;
        const Data data = make_data(spec, DataKind::exact, 4);
        for (int i = 0; i < 1000; ++i) {
          const double dy = static_cast<double>(data.dy(i));
          const double dz = activation_gradient(spec, dy, static_cast<double>(data.saved(i))).value;
          ASSERT_EQ(dz, std::nearbyint(dz));
          ASSERT_EQ(dz, round_to(type, dz));
          ASSERT_EQ(dy, round_to(type, dy));
        }
        for (const Expected& one : reference(spec, data)) ASSERT_LE(one.magnitude, 0x1p24);
      }
    }
  }
}

TEST(ActivationGradient, ResultsAreExactWhereTheDerivativeIs) {
  for (const Activation activation : all_activations()) {
    ConvSpec spec = with(activation);
    EXPECT_EQ(has_exact_epilogue(spec), saves_result(activation)) << to_string(activation);
    spec.epilogue.slope = 0.3f;
    EXPECT_EQ(has_exact_epilogue(spec), saves_result(activation) && activation != Activation::leaky_relu);
    spec.epilogue.slope = 0x1p-9f;
    EXPECT_EQ(has_exact_epilogue(spec), saves_result(activation) && activation != Activation::leaky_relu);
  }
}

TEST(ActivationGradient, SavedIsAnInputLikeDy) {
  ConvSpec spec = parse_spec("input=2,4,5,6 weight=3,4,2,2 dtype=f16 operation=weight_gradient dy_activation=relu");
  const std::vector<Input> inputs = inputs_of(spec);
  ASSERT_EQ(inputs.size(), 3u);
  EXPECT_EQ(std::string(inputs[2].name), "saved");
  EXPECT_EQ(inputs[2].pointer, &LaunchArgs::saved);
  EXPECT_EQ(inputs[2].bytes(), inputs[1].bytes());
}

// A wrong mask, or the derivative of the wrong side, is found.
TEST(ActivationGradient, AWrongDerivativeIsFound) {
  for (const Activation activation : all_activations()) {
    ConvSpec spec = with(activation);
    const std::vector<std::int64_t> positions = sample_positions(spec, 1 << 20, 1);
    for (const DataKind kind : {DataKind::exact, DataKind::random}) {
      const Data data = make_data(spec, kind, 4);
      const std::vector<Expected> expected = reference_at(spec, data, positions);
      std::vector<float> actual, without;
      for (const Expected& one : expected) actual.push_back(static_cast<float>(one.y));
      EXPECT_TRUE(compare(spec, kind, positions, expected, actual).passed()) << to_string(activation);
      ConvSpec plain = spec;
      plain.dy_activation = Activation::none;
      for (const Expected& one : reference_at(plain, data, positions)) without.push_back(static_cast<float>(one.y));
      EXPECT_GT(compare(spec, kind, positions, expected, without).wrong,
                static_cast<std::int64_t>(positions.size() / 2))
          << to_string(activation);
    }
  }
}

}  // namespace
}  // namespace jitconv::check
