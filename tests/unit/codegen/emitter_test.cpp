// The pieces of text that all kernel families share.
#include "codegen/text/emitter.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "jitconv/error.h"

namespace jitconv::codegen {
namespace {

RC_GTEST_PROP(FloatLiteral, ReadsBackToTheSameBits, ()) {
  const float value = std::bit_cast<float>(*rc::gen::arbitrary<std::uint32_t>());
  RC_PRE(std::isfinite(value));
  const std::string text = float_literal(value);
  RC_ASSERT(text.back() == 'f');
  char* end = nullptr;
  const float read = std::strtof(text.c_str(), &end);
  RC_ASSERT(end == text.c_str() + text.size() - 1);
  RC_ASSERT(std::bit_cast<std::uint32_t>(read) == std::bit_cast<std::uint32_t>(value));
}

TEST(FloatLiteral, IsHexadecimal) {
  EXPECT_EQ(float_literal(0.1f), "0x1.99999ap-4f");
  EXPECT_EQ(float_literal(1.0f), "0x1p+0f");
  EXPECT_EQ(float_literal(-2.5f), "-0x1.4p+1f");
  EXPECT_EQ(float_literal(0.0f), "0x0p+0f");
}

TEST(Constants, AreNarrowAsLongAsTheValueIs) {
  Constants constants;
  constants.add("kA", INT32_MAX).add("kB", std::int64_t{INT32_MAX} + 1, "many").add("kC", INT32_MIN);
  constants.add("kD", std::int64_t{INT32_MIN} - 1);
  EXPECT_EQ(constants.text(),
            "constexpr int kA = 2147483647;\n"
            "constexpr long long kB = 2147483648LL;  // many\n"
            "constexpr int kC = -2147483648;\n"
            "constexpr long long kD = -2147483649LL;\n");
}

TEST(Constants, GroupsAreSetApart) {
  Constants constants;
  constants.group("First").add("kA", 1).group("Second").add("kB", 2);
  EXPECT_EQ(constants.text(), "// First\nconstexpr int kA = 1;\n\n// Second\nconstexpr int kB = 2;\n");
}

TEST(DenseStrides, FollowTheLayout) {
  const auto numbers = [](Layout layout) {
    const View::Strides strides = dense_strides(layout, 3, 5, 7);
    return std::array{strides.n, strides.c, strides.h, strides.w};
  };
  EXPECT_EQ(numbers(Layout::nchw), (std::array<std::int64_t, 4>{105, 35, 7, 1}));
  EXPECT_EQ(numbers(Layout::nhwc), (std::array<std::int64_t, 4>{105, 1, 21, 3}));
}

TEST(Arguments, AreThoseOfTheEpilogue) {
  Problem problem = lower(parse_spec("input=1,4,9,9 weight=8,4,3,3"));
  for (const bool bias : {false, true}) {
    for (const bool residual : {false, true}) {
      problem.epilogue.bias = bias, problem.epilogue.residual = residual;
      std::vector<Tensor> expected = {Tensor::x, Tensor::w};
      if (bias) expected.push_back(Tensor::bias);
      if (residual) expected.push_back(Tensor::residual);
      expected.push_back(Tensor::y);
      std::vector<Tensor> tensors;
      for (const Argument& argument : arguments(problem)) {
        tensors.push_back(argument.tensor);
        const bool may_alias = residual && (argument.tensor == Tensor::residual || argument.tensor == Tensor::y);
        EXPECT_EQ(argument.type.find("__restrict__") == std::string::npos, may_alias) << argument.name;
        EXPECT_EQ(argument.type.find("const ") == 0, argument.tensor != Tensor::y) << argument.name;
      }
      EXPECT_EQ(tensors, expected);
    }
  }
}

TEST(Arguments, ParameterList) {
  EXPECT_EQ(parameter_list({}), "");
  EXPECT_EQ(parameter_list({{Tensor::x, "const float*", "x"}, {Tensor::y, "float*", "y"}}), "const float* x, float* y");
}

}  // namespace
}  // namespace jitconv::codegen
