// NaN, infinities and zeros of both signs through each activation: a NaN must come out as a NaN, and nothing else may.
// And in x, by every family: they must reach the outputs that read them, and no others. run_cases() can show neither,
// for there a NaN is an output that nobody wrote.
#include "support/special_values.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "runtime/compile.h"
#include "support/fresh_cache.h"
#include "support/gradient_cases.h"
#include "tools/host_device.h"

namespace jitconv::test {
namespace {

/// Sixteen values, four times: every place of a vector meets every value.
std::vector<float> special_values() {
  const std::vector<float> values = {kNaN,  1.0f,   -1.0f,   0.0f, -0.0f, kInfinity, -kInfinity, 3.0f,
                                     -3.0f, 100.0f, -100.0f, 0.5f, -0.5f, 1e-40f,    -1e-40f,    1e38f};
  std::vector<float> all;
  for (std::size_t i = 0; i < 64; ++i) all.push_back(values[(i + i / 16) % 16]);
  return all;
}

/// What the activation makes of x, by its definition, NaN included.
double activated(Activation activation, double x) {
  if (std::isnan(x)) return x;
  switch (activation) {
    case Activation::relu:
      return x < 0 ? 0 : x;
    case Activation::leaky_relu:
      return x < 0 ? 0.25 * x : x;
    case Activation::clamp:
      return x < -2 ? -2 : x > 5 ? 5 : x;
    case Activation::sigmoid:
      return 1 / (1 + std::exp(-x));
    case Activation::tanh:
      return std::tanh(x);
    default:
      return x;
  }
}

class SpecialValues : public ::testing::TestWithParam<Activation> {};

TEST_P(SpecialValues, GoThrough) {
  const Activation activation = GetParam();
  const FreshCache cache("special-values");
  tools::HostDevice device{Target::host()};
  // A copy of x through each family: one tap of weight 1.
  for (const char* shape : {"input=1,1,4,16 weight=1,1,1,1", "input=1,1,4,16 weight=1,1,1,1 padding=1"}) {
    ConvSpec spec = parse_spec(shape);
    spec.epilogue.activation = activation;
    spec.epilogue.slope = 0.25f;
    spec.epilogue.clamp_min = -2;
    spec.epilogue.clamp_max = 5;
    const TensorShape out = output_shape(spec);
    const std::vector<float> x = special_values();
    std::vector<float> y(static_cast<std::size_t>(out.h * out.w), 77.0f);
    tools::Buffer x_buffer(device, 256), w_buffer(device, 4), y_buffer(device, static_cast<std::int64_t>(4 * y.size()));
    const float one = 1;
    device.upload(x_buffer.data(), x.data(), 256);
    device.upload(w_buffer.data(), &one, 4);
    device.upload(y_buffer.data(), y.data(), y_buffer.bytes());
    LaunchArgs args;
    args.x = x_buffer.data(), args.w = w_buffer.data(), args.y = y_buffer.data();
    device.launch(compile(spec, Target::host()), args);
    for (const host::Report& report : device.take_reports())
      for (const host::Finding& finding : report.findings) ADD_FAILURE() << to_string(finding);
    device.download(y.data(), y_buffer.data(), y_buffer.bytes());

    const std::int64_t pad = spec.padding.top;
    for (std::int64_t p = 0; p < out.h; ++p)
      for (std::int64_t q = 0; q < out.w; ++q) {
        const std::int64_t h = p - pad, column = q - pad;
        const bool inside = h >= 0 && h < 4 && column >= 0 && column < 16;
        const float in = inside ? x[static_cast<std::size_t>(h * 16 + column)] : 0.0f;
        const float got = y[static_cast<std::size_t>(p * out.w + q)];
        const double want = activated(activation, in);
        EXPECT_EQ(std::isnan(got), std::isnan(want)) << to_string(spec) << ": " << in << " became " << got;
        if (std::isnan(got) || std::isnan(want)) continue;
        if (std::isinf(want)) {
          EXPECT_EQ(got, static_cast<float>(want)) << to_string(spec) << ": of " << in;
        } else {
          // Results below the normal numbers may be rounded to few digits, or to zero.
          EXPECT_NEAR(got, want, std::abs(want) * 1e-6 + 1e-37) << to_string(spec) << ": of " << in;
        }
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Activations, SpecialValues,
                         ::testing::Values(Activation::none, Activation::relu, Activation::leaky_relu,
                                           Activation::clamp, Activation::sigmoid, Activation::tanh),
                         [](const auto& one) { return std::string(to_string(one.param)); });

// Each case in one of its types, by turns: all of them take a GPU.
TEST(SpecialValuesOfEveryFamily, ReachOnlyTheOutputsThatReadThem) {
  const FreshCache cache("special-values");
  const Target target = Target::host(parse_target("sm_90a"));
  tools::HostDevice device{target};
  Report::Category counts;
  std::size_t turn = 0;
  for (const FamilyCase& family : family_cases(target)) {
    const std::vector<DataType> types = types_of(family);
    const SpecialValuesCase one = special_values_case(family, types[turn++ % types.size()], target);
    EXPECT_EQ(special_values_fault(device, runtime::compile_plan(one.plan), counts), "") << one.name;
  }
  EXPECT_EQ(counts.kernels, static_cast<std::int64_t>(turn));
}

TEST(SpecialValuesOfGradients, ReachTheResultsThatReadThem) {
  const FreshCache cache("special-values");
  const Target target = Target::host(parse_target("sm_90a"));
  tools::HostDevice device{target};
  Report::Category counts;
  for (const Case& one : gradient_cases(target))
    EXPECT_EQ(special_values_fault(device, runtime::compile_plan(*one.plan), counts), "") << one.name;
}

}  // namespace
}  // namespace jitconv::test
