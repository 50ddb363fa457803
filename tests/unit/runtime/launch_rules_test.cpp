// The checks on a launch's pointers: every rule, its neighbours that are allowed, and the words of the refusal. No
// driver. packed_weight_rules_test.cpp has those of kernels that use scratch.
#include "launch_rules_support.h"

namespace jitconv::runtime_test {
namespace {

TEST(LaunchRules, AcceptsWhatTheSpecNeeds) {
  EXPECT_EQ(refused(full_spec(), addresses_for(full_spec())), "");
  EXPECT_EQ(refused(new_spec(), addresses_for(new_spec())), "");
}

TEST(LaunchRules, EveryPointerMayBeMissing) {
  const ConvSpec spec = full_spec();
  const auto without = [&](auto member) {
    LaunchArgs args = addresses_for(spec);
    args.*member = nullptr;
    return refused(spec, args);
  };
  EXPECT_EQ(without(&LaunchArgs::x), "x");
  EXPECT_EQ(without(&LaunchArgs::w), "w");
  EXPECT_EQ(without(&LaunchArgs::bias), "bias");
  EXPECT_EQ(without(&LaunchArgs::residual), "residual");
  EXPECT_EQ(without(&LaunchArgs::y), "y");
  EXPECT_EQ(without(&LaunchArgs::workspace), "workspace");
}

TEST(LaunchRules, SuperfluousPointersAreMistakesButForTheWorkspace) {
  const ConvSpec spec = new_spec();
  LaunchArgs args = addresses_for(full_spec());
  args.residual = nullptr;
  EXPECT_EQ(refused(spec, args), "bias");
  args = addresses_for(full_spec());
  args.bias = nullptr;
  EXPECT_EQ(refused(spec, args), "residual");
  args = addresses_for(spec);
  args.workspace = moved(args.y, 1);  // any value: nobody looks at it
  EXPECT_EQ(refused(spec, args, 0), "");
}

TEST(LaunchRules, AlignmentIsTheSpecs) {
  ConvSpec spec = full_spec();
  LaunchArgs args = addresses_for(spec);
  args.x = moved(args.x, 4);
  EXPECT_EQ(refused(spec, args), "x");
  spec.alignment = 4;
  EXPECT_EQ(refused(spec, args), "");
  args.y = moved(args.y, 2);
  EXPECT_EQ(refused(spec, args), "y");
  args.y = addresses_for(spec).y;
  args.bias = moved(args.bias, 12);
  EXPECT_EQ(refused(spec, args), "");
  args.workspace = moved(args.workspace, 128);
  EXPECT_EQ(refused(spec, args), "workspace");
}

TEST(LaunchRules, OutputMustNotTouchAnInput) {
  const ConvSpec spec = full_spec();
  const LaunchArgs good = addresses_for(spec);
  const TensorShape p = output_shape(spec);
  const std::ptrdiff_t x_bytes = spec.input.n * spec.input.c * spec.input.h * spec.input.w * 4;
  const std::ptrdiff_t y_bytes = p.n * p.c * p.h * p.w * 4;
  const auto with_x = [&](std::ptrdiff_t from_y) {
    LaunchArgs args = good;
    args.x = moved(args.y, from_y);
    return refused(spec, args);
  };
  EXPECT_EQ(with_x(0), "y");
  EXPECT_EQ(with_x(y_bytes - 16), "y");
  EXPECT_EQ(with_x(y_bytes), "") << "right behind it";
  EXPECT_EQ(with_x(-x_bytes), "") << "right before it";
  EXPECT_EQ(with_x(16 - x_bytes), "y");

  LaunchArgs args = good;
  args.w = args.y;
  EXPECT_EQ(refused(spec, args), "y");
  args = good;
  args.bias = moved(args.y, 256);
  EXPECT_EQ(refused(spec, args), "y");
}

TEST(LaunchRules, ResidualMayBeTheOutputItselfButNotAPartOfIt) {
  const ConvSpec spec = full_spec();
  LaunchArgs args = addresses_for(spec);
  args.residual = args.y;
  EXPECT_EQ(refused(spec, args), "");
  args.residual = moved(args.y, 16);
  EXPECT_EQ(refused(spec, args), "y");
}

TEST(LaunchRules, WorkspaceIsNobodyElses) {
  const ConvSpec spec = full_spec();
  LaunchArgs args = addresses_for(spec);
  args.workspace = moved(args.y, 256);
  EXPECT_NE(refused(spec, args), "");
  args.workspace = const_cast<void*>(moved(args.x, 256));
  EXPECT_EQ(refused(spec, args), "workspace");
  args.workspace = const_cast<void*>(moved(args.w, -kWorkspaceBytes));
  EXPECT_EQ(refused(spec, args), "");
}

TEST(LaunchRules, SizesFollowTheElementType) {
  ConvSpec spec = full_spec();
  const TensorShape p = output_shape(spec);
  LaunchArgs args = addresses_for(spec);
  args.x = moved(args.y, p.n * p.c * p.h * p.w * 2);
  EXPECT_EQ(refused(spec, args), "y");
  spec.dtype = DataType::f16;
  EXPECT_EQ(refused(spec, args), "");
}

}  // namespace
}  // namespace jitconv::runtime_test
