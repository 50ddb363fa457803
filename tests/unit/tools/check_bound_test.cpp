// The bounds hold for honest arithmetic and fail for dishonest: each comparison is shown both ways.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <stdexcept>

#include "tools/check/bound.h"
#include "tools/check/number.h"

namespace jitconv::check {
namespace {

ConvSpec middling() {
  ConvSpec spec;
  spec.input = {1, 32, 12, 12};
  spec.weight = {8, 32, 3, 3};
  spec.padding = 1;
  return spec;
}

double round_to_tf32(double value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  return static_cast<double>(std::bit_cast<float>((bits + 0x1000u) & ~0x1fffu));
}

enum class Fault { none, tf32_operands, no_last_channel, bf16_sum };

/// A sequential fp32 FMA loop over the definition (NCHW), with at most one thing done wrong.
std::vector<float> compute(const ConvSpec& spec, const Data& data, Fault fault) {
  const TensorShape y = output_shape(spec), x = spec.input;
  const WeightShape f = spec.weight;
  std::vector<float> out;
  for (std::int64_t at = 0; at < element_count(y); ++at) {
    const TensorShape o = coordinates(spec, at);
    float sum = 0;
    for (std::int64_t c = 0; c < f.c - (fault == Fault::no_last_channel ? 1 : 0); ++c)
      for (std::int64_t r = 0; r < f.r; ++r)
        for (std::int64_t s = 0; s < f.s; ++s) {
          const std::int64_t h = o.h + r - spec.padding.top, w = o.w + s - spec.padding.left;
          if (h < 0 || h >= x.h || w < 0 || w >= x.w) continue;
          float a = data.x(((o.n * x.c + c) * x.h + h) * x.w + w), b = data.w(((o.c * f.c + c) * f.r + r) * f.s + s);
          if (fault == Fault::tf32_operands) {
            a = static_cast<float>(round_to_tf32(static_cast<double>(a)));
            b = static_cast<float>(round_to_tf32(static_cast<double>(b)));
          }
          sum = std::fma(a, b, sum);
          if (fault == Fault::bf16_sum) sum = from_bf16(to_bf16(static_cast<double>(sum)));
        }
    if (spec.epilogue.bias) sum += data.bias(o.c);
    if (spec.epilogue.residual) sum += data.residual(at);
    const double activated = static_cast<double>(static_cast<float>(activate(spec.epilogue, static_cast<double>(sum))));
    out.push_back(static_cast<float>(round_to(spec.dtype, activated)));
  }
  return out;
}

Comparison run(const ConvSpec& spec, DataKind kind, Fault fault) {
  const Data data = make_data(spec, kind, 21);
  const std::vector<std::int64_t> positions = sample_positions(spec, 1 << 20, 0);
  return compare(spec, kind, positions, reference_at(spec, data, positions), compute(spec, data, fault));
}

constexpr DataKind kKinds[] = {DataKind::exact, DataKind::random, DataKind::positive};

TEST(Bound, HonestLoopPassesForAllTypesAndKinds) {
  ConvSpec spec = middling();
  spec.epilogue.bias = spec.epilogue.residual = true;
  for (const DataType type : {DataType::f32, DataType::f16, DataType::bf16}) {
    spec.dtype = type;
    for (const DataKind kind : kKinds) {
      const Comparison result = run(spec, kind, Fault::none);
      EXPECT_TRUE(result.passed()) << result.text();
      EXPECT_EQ(result.compared, 8 * 144);
      EXPECT_EQ(result.exact, kind == DataKind::exact);
      EXPECT_LE(result.worst_ratio, 1);
      if (!result.exact) {
        EXPECT_GT(result.worst_ratio, 0.001) << "the bound is too wide to notice anything";
      }
    }
  }
}

TEST(Bound, MissingChannelFailsForAllTypesAndKinds) {
  ConvSpec spec = middling();
  for (const DataType type : {DataType::f32, DataType::f16, DataType::bf16}) {
    spec.dtype = type;
    for (const DataKind kind : kKinds) {
      const Comparison result = run(spec, kind, Fault::no_last_channel);
      EXPECT_GT(result.wrong, result.compared / 4) << to_string(type) << " " << to_string(kind);
      EXPECT_NE(result.first_wrong.find("y[n=0, k="), std::string::npos);
    }
  }
}

TEST(Bound, Tf32OperandsPassAsTf32AndFailAsFp32) {
  ConvSpec spec = middling();
  spec.math = MathMode::tf32;
  EXPECT_TRUE(run(spec, DataKind::random, Fault::tf32_operands).passed());
  EXPECT_TRUE(run(spec, DataKind::positive, Fault::tf32_operands).passed());
  for (const MathMode math : {MathMode::fp32, MathMode::ieee}) {
    spec.math = math;
    EXPECT_FALSE(run(spec, DataKind::random, Fault::tf32_operands).passed());
    EXPECT_FALSE(run(spec, DataKind::positive, Fault::tf32_operands).passed());
  }
  // Small integers are TF32 values: exact data cannot tell.
  EXPECT_TRUE(run(spec, DataKind::exact, Fault::tf32_operands).passed());
}

TEST(Bound, SumKeptIn16BitsFails) {
  ConvSpec spec = middling();
  spec.dtype = DataType::bf16;
  EXPECT_FALSE(run(spec, DataKind::random, Fault::bf16_sum).passed());
  EXPECT_FALSE(run(spec, DataKind::positive, Fault::bf16_sum).passed());
  // Exact data is made of sums that bf16 holds: this fault is what the other kinds are for.
  EXPECT_TRUE(run(spec, DataKind::exact, Fault::bf16_sum).passed());
}

TEST(Bound, FollowsFromModeLengthAndType) {
  Expected expected;
  expected.magnitude = 1;
  ConvSpec spec = middling();  // 288 products
  const double u = 0x1p-24;
  EXPECT_NEAR(error_bound(spec, expected), 290 * u, 290 * u * 1e-4);
  spec.math = MathMode::ieee;
  EXPECT_NEAR(error_bound(spec, expected), 290 * u, 290 * u * 1e-4);
  spec.math = MathMode::tf32;
  EXPECT_NEAR(error_bound(spec, expected), 2 * 0x1p-11 + 290 * 4 * u, 1e-6);
  spec.dtype = DataType::f16;
  expected.y = 3;
  EXPECT_NEAR(error_bound(spec, expected), 290 * 4 * u + 0x1p-11 * 3, 1e-6);
  spec.math = MathMode::ieee;
  EXPECT_NEAR(error_bound(spec, expected), 290 * u + 0x1p-11 * 3, 1e-6);
  EXPECT_LT(likely_error(middling(), expected), error_bound(middling(), expected) / 2);
}

constexpr Activation kActivations[] = {
    Activation::none, Activation::relu,    Activation::leaky_relu, Activation::gelu_erf,  Activation::gelu_tanh,
    Activation::silu, Activation::sigmoid, Activation::tanh,       Activation::hardswish, Activation::clamp};

TEST(Bound, CoversWhatAnActivationMakesOfAnError) {
  for (const Activation activation : kActivations) {
    for (const float slope : {0.01f, -3.0f}) {
      ConvSpec spec = middling();
      spec.epilogue.activation = activation;
      spec.epilogue.slope = slope;
      for (double z = -12; z < 12; z += 0.0625) {
        Expected expected;
        expected.z = z;
        expected.y = activate(spec.epilogue, z);
        expected.magnitude = 64;
        const double shift = expected.magnitude * 290 * 0x1p-24;
        const double bound = error_bound(spec, expected);
        ASSERT_LE(std::fabs(activate(spec.epilogue, z + shift) - expected.y), bound) << to_string(activation) << z;
        ASSERT_LE(std::fabs(activate(spec.epilogue, z - shift) - expected.y), bound) << to_string(activation) << z;
      }
    }
  }
}

float activate_in_fp32(const Epilogue& epilogue, float x) {
  switch (epilogue.activation) {
    case Activation::leaky_relu:
      return x >= 0 ? x : epilogue.slope * x;
    case Activation::gelu_erf:
      return 0.5f * x * (1.0f + std::erf(x * 0.70710678f));
    case Activation::gelu_tanh:
      return 0.5f * x * (1.0f + std::tanh(0.79788456f * (x + 0.044715f * x * x * x)));
    case Activation::silu:
      return x / (1.0f + std::exp(-x));
    case Activation::sigmoid:
      return 1.0f / (1.0f + std::exp(-x));
    case Activation::tanh:
      return std::tanh(x);
    case Activation::hardswish:
      return x * std::min(std::max(x + 3.0f, 0.0f), 6.0f) / 6.0f;
    default:
      return static_cast<float>(activate(epilogue, static_cast<double>(x)));
  }
}

TEST(Bound, CoversActivationsEvaluatedInFp32) {
  for (const Activation activation : kActivations) {
    ConvSpec spec = middling();
    spec.epilogue.activation = activation;
    for (int i = -400'000; i < 400'000; ++i) {
      const float z = static_cast<float>(i) * 4.1e-5f;
      Expected expected;
      expected.z = static_cast<double>(z);
      expected.y = activate(spec.epilogue, expected.z);
      const double actual = static_cast<double>(activate_in_fp32(spec.epilogue, z));
      ASSERT_LE(std::fabs(actual - expected.y), error_bound(spec, expected)) << to_string(activation) << " " << z;
    }
  }
}

TEST(Bound, TanhToElevenBitsFails) {
  ConvSpec spec = middling();
  spec.epilogue.activation = Activation::tanh;
  Expected expected;
  expected.z = 0.7;
  expected.y = std::tanh(0.7);
  const float coarse = static_cast<float>(expected.y * (1 + 0x1p-12));
  const std::int64_t position = 0;
  const Comparison result = compare(spec, DataKind::random, {&position, 1}, {&expected, 1}, {&coarse, 1});
  EXPECT_EQ(result.wrong, 1);
}

TEST(ExactEpilogue, OnlyWhereOneRoundingRemains) {
  ConvSpec spec = middling();
  for (const Activation activation : kActivations) {
    spec.epilogue.activation = activation;
    spec.epilogue.slope = 0.01f;
    const bool linear = activation == Activation::none || activation == Activation::relu ||
                        activation == Activation::leaky_relu || activation == Activation::clamp;
    spec.dtype = DataType::f32;
    EXPECT_EQ(has_exact_epilogue(spec), linear) << to_string(activation);
    spec.dtype = DataType::f16;
    EXPECT_EQ(has_exact_epilogue(spec), linear && activation != Activation::leaky_relu) << to_string(activation);
    spec.epilogue.slope = -0.125f;
    EXPECT_EQ(has_exact_epilogue(spec), linear) << to_string(activation);
  }
  spec.epilogue.activation = Activation::clamp;
  spec.epilogue.clamp_max = 0.1f;
  EXPECT_FALSE(has_exact_epilogue(spec));
}

/// Compares one output of a bias-free f16 convolution.
Comparison compare_one(double expected_value, float actual, DataKind kind = DataKind::random) {
  ConvSpec spec = middling();
  spec.dtype = DataType::f16;
  Expected expected;
  expected.y = expected.z = expected_value;
  expected.magnitude = std::isfinite(expected_value) ? std::fabs(expected_value) : 0;
  expected.terms = 1;
  const std::int64_t position = 5;
  return compare(spec, kind, {&position, 1}, {&expected, 1}, {&actual, 1});
}

TEST(Compare, SpecialValues) {
  EXPECT_EQ(compare_one(NAN, NAN).wrong, 0);
  EXPECT_EQ(compare_one(NAN, 1).wrong, 1);
  EXPECT_EQ(compare_one(1, NAN).wrong, 1);
  EXPECT_EQ(compare_one(INFINITY, INFINITY).wrong, 0);
  EXPECT_EQ(compare_one(INFINITY, -INFINITY).wrong, 1);
  EXPECT_EQ(compare_one(1, INFINITY).wrong, 1);
  EXPECT_EQ(compare_one(65510, INFINITY).wrong, 0);  // an error within the bound carries it past 65520
  EXPECT_EQ(compare_one(65510, -INFINITY).wrong, 1);
  EXPECT_EQ(compare_one(1e6, INFINITY).wrong, 0);  // the right answer overflows
  EXPECT_EQ(compare_one(1e6, 65504).wrong, 1);
  EXPECT_EQ(compare_one(3, 3, DataKind::exact).wrong, 0);
  EXPECT_EQ(compare_one(3, 3.001953125f, DataKind::exact).wrong, 1);  // the next f16
  EXPECT_EQ(compare_one(3, 3.001953125f).wrong, 1);                   // one spacing off is more than a rounding
  EXPECT_EQ(compare_one(3.0008, 3.001953125f).wrong, 0);              // and this is a rounding with an error before it
}

TEST(Compare, ExactDataAllowsNotEvenTheBound) {
  const ConvSpec spec = middling();
  Expected expected;
  expected.y = expected.z = 1000;
  expected.magnitude = 5000;
  expected.terms = 288;
  const std::int64_t position = 0;
  const float next = std::nextafter(1000.0f, 2000.0f);
  EXPECT_EQ(compare(spec, DataKind::exact, {&position, 1}, {&expected, 1}, {&next, 1}).wrong, 1);
  EXPECT_EQ(compare(spec, DataKind::random, {&position, 1}, {&expected, 1}, {&next, 1}).wrong, 0);
}

TEST(Compare, AllZeroSumsShowNothing) {
  const Comparison result = compare_one(0, 0, DataKind::exact);
  EXPECT_EQ(result.wrong, 0);
  EXPECT_TRUE(result.vacuous());
  EXPECT_FALSE(result.passed());
  EXPECT_NE(result.text().find("shows nothing"), std::string::npos);
  EXPECT_TRUE(Comparison{}.vacuous());
}

TEST(Compare, WindowsInThePaddingAreNotHeldAgainstIt) {
  ConvSpec spec = middling();
  spec.input = {1, 32, 1, 1};
  spec.weight = {8, 32, 1, 1};
  spec.padding = 3;  // 48 of 49 outputs are zero by definition
  const Comparison result = run(spec, DataKind::exact, Fault::none);
  EXPECT_EQ(result.with_terms, 8);
  EXPECT_TRUE(result.passed()) << result.text();
}

TEST(Compare, RefusesExactDataThatIsNot) {
  ConvSpec spec = middling();
  Expected expected;
  expected.magnitude = 0x1p25;
  const std::int64_t position = 0;
  const float actual = 0;
  EXPECT_THROW(compare(spec, DataKind::exact, {&position, 1}, {&expected, 1}, {&actual, 1}), std::invalid_argument);
}

}  // namespace
}  // namespace jitconv::check
