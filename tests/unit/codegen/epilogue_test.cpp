// The text of epilogues, and where kernels that stage their outputs compute its parts.
#include "codegen/text/epilogue.h"

#include <gtest/gtest.h>

#include "codegen/text/emitter.h"
#include "jitconv/error.h"

namespace jitconv::codegen {
namespace {

std::string activation_text(Activation activation) {
  Epilogue epilogue;
  epilogue.activation = activation;
  return activation_function(epilogue);
}

TEST(Activation, NoneHasNoFunctionAndAllOthersDo) {
  EXPECT_EQ(activation_text(Activation::none), "");
  for (int i = 1; i <= static_cast<int>(Activation::clamp); ++i) {
    const std::string text = activation_text(static_cast<Activation>(i));
    EXPECT_NE(text.find("float activate(float x) {\n  return "), std::string::npos) << text;
    EXPECT_NE(text.find(to_string(static_cast<Activation>(i))), std::string::npos) << text;
    // Fast intrinsics would break the accuracy that docs/accuracy.md derives.
    EXPECT_EQ(text.find("__expf"), std::string::npos) << text;
    EXPECT_EQ(text.find("__fdividef"), std::string::npos) << text;
  }
  EXPECT_THROW(activation_text(static_cast<Activation>(99)), InternalError);
}

TEST(Activation, NumbersOfTheSpecAreExact) {
  Epilogue epilogue;
  epilogue.activation = Activation::leaky_relu;
  epilogue.slope = 0.1f;
  EXPECT_NE(activation_function(epilogue).find("0x1.99999ap-4f"), std::string::npos);
  epilogue.activation = Activation::clamp;
  epilogue.clamp_min = -0.3f;
  epilogue.clamp_max = 5.7f;
  EXPECT_NE(activation_function(epilogue).find(float_literal(-0.3f)), std::string::npos);
  EXPECT_NE(activation_function(epilogue).find(float_literal(5.7f)), std::string::npos);
}

TEST(EpilogueLines, OneLinePerPartInTheOrderOfTheDefinition) {
  Epilogue epilogue;
  EXPECT_EQ(epilogue_lines(epilogue, {.residual = residual_at("i")}), "");
  EXPECT_EQ(channel_values(epilogue, "k"), "");
  epilogue.bias = epilogue.residual = true;
  epilogue.activation = Activation::relu;
  EXPECT_EQ(channel_values(epilogue, "k"), "const float channel_bias = to_float(bias[k]);\n");
  EXPECT_EQ(epilogue_lines(epilogue, {.residual = residual_at("i")}),
            "value += channel_bias;\nvalue += to_float(residual[i]);\nvalue = activate(value);\n");
}

TEST(EpilogueLines, NameTheKernelsTermsAndTheirConditions) {
  const Epilogue epilogue{.bias = true, .residual = true, .activation = Activation::relu};
  EXPECT_EQ(epilogue_lines(epilogue, {.value = "v[e]",
                                      .bias = "b",
                                      .residual = "r",
                                      .bias_condition = "half == 0",
                                      .residual_condition = "stored"}),
            "if (half == 0) v[e] += b;\nif (stored) v[e] += r;\nv[e] = activate(v[e]);\n");
}

TEST(StagedEpilogue, LosesNothingAndActivatesBehindTheLastTerm) {
  for (const bool bias : {false, true})
    for (const bool residual : {false, true})
      for (const bool whole : {false, true}) {
        const Epilogue epilogue{.bias = bias, .residual = residual, .activation = Activation::clamp, .clamp_max = 5};
        const StagedEpilogue parts = staged_epilogue(epilogue, whole);
        const bool early = whole && !residual;
        EXPECT_EQ(parts.before.bias, bias);
        EXPECT_FALSE(parts.after.bias || parts.before.residual);
        EXPECT_EQ(parts.after.residual, residual);
        EXPECT_EQ(parts.before.activation, early ? Activation::clamp : Activation::none);
        EXPECT_EQ(parts.after.activation, early ? Activation::none : Activation::clamp);
      }
}

}  // namespace
}  // namespace jitconv::codegen
