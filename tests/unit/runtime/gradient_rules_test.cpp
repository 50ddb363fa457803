// The checks on the pointers of the gradients' launches, rule by rule as launch_rules_test.cpp has them for the
// forward.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/launch_rules.h"
#include "runtime_test_support.h"

namespace jitconv::runtime_test {
namespace {

constexpr std::int64_t kWorkspaceBytes = 4096;

ConvSpec gradient_spec(Operation operation, bool full = true) {
  ConvSpec spec = new_spec();
  spec.operation = operation;
  spec.epilogue.bias = spec.epilogue.residual = full;
  return spec;
}

template <typename T>
T* moved(T* pointer, std::ptrdiff_t bytes) {
  return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(pointer) + static_cast<std::uintptr_t>(bytes));
}

/// The refusal, "field: message"; "" if the pointers are accepted.
std::string refusal(const ConvSpec& spec, const LaunchArgs& args, std::int64_t packed_weights = 0) {
  codegen::ConvPlan plan;
  plan.spec = spec;
  plan.scratch = scratch_of(packed_weights, kWorkspaceBytes - packed_weights);
  try {
    runtime::LaunchRules(plan).check(runtime::given_pointers(args));
    return "";
  } catch (const SpecError& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    return error.field() + ": " + error.what();
  }
}

std::string refused_field(const ConvSpec& spec, const LaunchArgs& args) {
  const std::string text = refusal(spec, args);
  return text.substr(0, text.find(':'));
}

template <typename Pointer>
std::string refused_with(const ConvSpec& spec, Pointer LaunchArgs::*member, Pointer value) {
  LaunchArgs args = addresses_for(spec);
  args.*member = value;
  return refused_field(spec, args);
}

TEST(GradientRules, AcceptWhatTheSpecNeeds) {
  for (const Operation operation : {Operation::data_gradient, Operation::weight_gradient}) {
    for (const bool full : {false, true}) {
      const ConvSpec spec = gradient_spec(operation, full);
      EXPECT_EQ(refusal(spec, addresses_for(spec)), "") << to_string(operation) << full;
    }
  }
}

TEST(GradientRules, EveryPointerMayBeMissing) {
  const ConvSpec data = gradient_spec(Operation::data_gradient), weight = gradient_spec(Operation::weight_gradient);
  const void* const none = nullptr;
  void* const no_result = nullptr;
  EXPECT_EQ(refused_with(data, &LaunchArgs::dy, none), "dy");
  EXPECT_EQ(refused_with(data, &LaunchArgs::w, none), "w");
  EXPECT_EQ(refused_with(data, &LaunchArgs::bias, none), "bias");
  EXPECT_EQ(refused_with(data, &LaunchArgs::residual, none), "residual");
  EXPECT_EQ(refused_with(data, &LaunchArgs::dx, no_result), "dx");
  EXPECT_EQ(refused_with(data, &LaunchArgs::workspace, no_result), "workspace");
  EXPECT_EQ(refused_with(weight, &LaunchArgs::x, none), "x");
  EXPECT_EQ(refused_with(weight, &LaunchArgs::dy, none), "dy");
  EXPECT_EQ(refused_with(weight, &LaunchArgs::residual, none), "residual");
  EXPECT_EQ(refused_with(weight, &LaunchArgs::dw, no_result), "dw");
  EXPECT_EQ(refused_with(weight, &LaunchArgs::db, no_result), "db");
}

TEST(GradientRules, WhatTheOperationHasNoPartForIsAMistake) {
  const void* const input = reinterpret_cast<const void*>(std::uintptr_t{20} << 34);
  void* const result = const_cast<void*>(input);
  const ConvSpec data = gradient_spec(Operation::data_gradient, false);
  const ConvSpec weight = gradient_spec(Operation::weight_gradient, false);
  const ConvSpec forward = gradient_spec(Operation::forward, false);
  EXPECT_EQ(refused_with(data, &LaunchArgs::x, input), "x");
  EXPECT_EQ(refused_with(data, &LaunchArgs::bias, input), "bias");
  EXPECT_EQ(refused_with(data, &LaunchArgs::y, result), "y");
  EXPECT_EQ(refused_with(data, &LaunchArgs::dw, result), "dw");
  EXPECT_EQ(refused_with(data, &LaunchArgs::db, result), "db");
  EXPECT_EQ(refused_with(weight, &LaunchArgs::w, input), "w");
  EXPECT_EQ(refused_with(weight, &LaunchArgs::bias, input), "bias");
  EXPECT_EQ(refused_with(weight, &LaunchArgs::packed_w, input), "packed_w");
  EXPECT_EQ(refused_with(weight, &LaunchArgs::y, result), "y");
  EXPECT_EQ(refused_with(weight, &LaunchArgs::dx, result), "dx");
  EXPECT_EQ(refused_with(weight, &LaunchArgs::db, result), "db");
  EXPECT_EQ(refused_with(forward, &LaunchArgs::dy, input), "dy");
  EXPECT_EQ(refused_with(forward, &LaunchArgs::dx, result), "dx");
  EXPECT_EQ(refused_with(forward, &LaunchArgs::dw, result), "dw");
  EXPECT_EQ(refused_with(forward, &LaunchArgs::db, result), "db");
  // A bias of a weight gradient is a result, db.
  EXPECT_EQ(refused_with(gradient_spec(Operation::weight_gradient), &LaunchArgs::bias, input), "bias");
}

TEST(GradientRules, SayWhatTheOperationReads) {
  const ConvSpec weight = gradient_spec(Operation::weight_gradient, false);
  for (const void* LaunchArgs::*pointer : {&LaunchArgs::w, &LaunchArgs::packed_w}) {
    LaunchArgs args = addresses_for(weight);
    args.*pointer = reinterpret_cast<const void*>(std::uintptr_t{20} << 34);
    const std::string text = refusal(weight, args);
    EXPECT_NE(text.find("the spec's operation has no part for it"), std::string::npos) << text;
  }
}

TEST(GradientRules, AlignmentIsTheSpecs) {
  for (const Operation operation : {Operation::data_gradient, Operation::weight_gradient}) {
    ConvSpec spec = gradient_spec(operation);
    const LaunchArgs good = addresses_for(spec);
    LaunchArgs args = good;
    args.dy = moved(args.dy, 4);
    EXPECT_EQ(refused_field(spec, args), "dy");
    for (void* LaunchArgs::*result : {&LaunchArgs::dx, &LaunchArgs::dw, &LaunchArgs::db}) {
      if (good.*result == nullptr) continue;
      args = good;
      args.*result = moved(args.*result, 8);
      EXPECT_NE(refused_field(spec, args), "");
    }
    spec.alignment = 4;
    EXPECT_EQ(refused_field(spec, args), "");
  }
}

TEST(GradientRules, DxTouchesNothing) {
  const ConvSpec spec = gradient_spec(Operation::data_gradient);
  const LaunchArgs good = addresses_for(spec);
  const std::ptrdiff_t dx_bytes = spec.input.n * spec.input.c * spec.input.h * spec.input.w * 4;
  const auto with_dy = [&](std::ptrdiff_t from_dx) {
    LaunchArgs args = good;
    args.dy = moved(args.dx, from_dx);
    return refused_field(spec, args);
  };
  EXPECT_EQ(with_dy(0), "dx");
  EXPECT_EQ(with_dy(dx_bytes - 16), "dx");
  EXPECT_EQ(with_dy(dx_bytes), "") << "right behind it";
  LaunchArgs args = good;
  args.w = args.dx;
  EXPECT_EQ(refused_field(spec, args), "dx");
  args = good;
  args.bias = moved(args.dx, 64);
  EXPECT_EQ(refused_field(spec, args), "dx");
  args = good;
  args.workspace = moved(args.dx, 256);
  EXPECT_NE(refused_field(spec, args), "");
}

TEST(GradientRules, ResidualMayBeTheResultItselfButNotAPartOfIt) {
  ConvSpec spec = gradient_spec(Operation::data_gradient);
  LaunchArgs args = addresses_for(spec);
  args.residual = args.dx;
  EXPECT_EQ(refusal(spec, args), "");
  args.residual = moved(args.dx, 16);
  EXPECT_EQ(refused_field(spec, args), "dx");

  spec = gradient_spec(Operation::weight_gradient);
  args = addresses_for(spec);
  args.residual = args.dw;
  EXPECT_EQ(refusal(spec, args), "");
  args.residual = moved(args.dw, 16);
  EXPECT_EQ(refused_field(spec, args), "dw");
  args.residual = args.db;
  EXPECT_NE(refused_field(spec, args), "") << "db is nobody's residual";
}

TEST(GradientRules, DbTouchesNothing) {
  const ConvSpec spec = gradient_spec(Operation::weight_gradient);
  const LaunchArgs good = addresses_for(spec);
  const std::ptrdiff_t dw_bytes = spec.weight.k * spec.weight.c * spec.weight.r * spec.weight.s * 4;
  const std::ptrdiff_t db_bytes = spec.weight.k * 4;
  LaunchArgs args = good;
  args.db = moved(args.dw, dw_bytes);
  EXPECT_EQ(refusal(spec, args), "") << "right behind dw";
  args.db = moved(args.dw, dw_bytes - 16);
  EXPECT_NE(refused_field(spec, args), "");
  args.db = moved(args.dw, -db_bytes);
  EXPECT_EQ(refusal(spec, args), "") << "right before dw";
  args.db = args.dw;
  EXPECT_NE(refused_field(spec, args), "");
  for (const void* input : {good.x, good.dy, good.residual, const_cast<const void*>(good.workspace)}) {
    args = good;
    args.db = const_cast<void*>(input);
    EXPECT_NE(refused_field(spec, args), "");
  }
}

TEST(GradientRules, SizesFollowTheOutputType) {
  ConvSpec spec = gradient_spec(Operation::weight_gradient);
  spec.dtype = DataType::bf16;
  LaunchArgs args = addresses_for(spec);
  const std::ptrdiff_t elements = spec.weight.k * spec.weight.c * spec.weight.r * spec.weight.s;
  args.db = moved(args.dw, 2 * elements);
  EXPECT_EQ(refusal(spec, args), "");
  spec.output_dtype = OutputType::f32;
  EXPECT_NE(refused_field(spec, args), "") << "dw has twice the bytes";
  args.db = moved(args.dw, 4 * elements);
  EXPECT_EQ(refusal(spec, args), "");
}

TEST(GradientRules, SavedIsATensorLikeDy) {
  for (const Operation operation : {Operation::data_gradient, Operation::weight_gradient}) {
    ConvSpec spec = gradient_spec(operation);
    const void* const input = reinterpret_cast<const void*>(std::uintptr_t{20} << 34);
    LaunchArgs args = addresses_for(spec);
    args.saved = input;
    std::string text = refusal(spec, args);
    EXPECT_EQ(text.rfind("saved: saved is 0x", 0), 0u) << text;
    EXPECT_NE(text.find("must be null: the spec has no dy_activation"), std::string::npos) << text;

    spec.dy_activation = Activation::relu;
    const LaunchArgs good = addresses_for(spec);
    EXPECT_EQ(refusal(spec, good), "");
    const TensorShape y = output_shape(spec);
    const std::int64_t bytes = y.n * y.c * y.h * y.w * 4;
    args = good;
    args.saved = nullptr;
    EXPECT_EQ(refusal(spec, args), "saved: saved is null, must point to " + std::to_string(bytes) + " bytes");
    args.saved = moved(good.saved, 4);
    text = refusal(spec, args);
    EXPECT_NE(text.find("must be a multiple of 16 (spec.alignment)"), std::string::npos) << text;
    // dy itself, as where the activation is the last step and y was saved over it, and beside the result.
    args.saved = good.dy;
    EXPECT_EQ(refusal(spec, args), "");
    void* const result = operation == Operation::data_gradient ? good.dx : good.dw;
    const std::string name = operation == Operation::data_gradient ? "dx" : "dw";
    args.saved = moved(result, -bytes);
    EXPECT_EQ(refusal(spec, args), "") << "right before it";
    args.saved = moved(result, -bytes + 16);
    EXPECT_EQ(refused_field(spec, args), name);
    args.saved = moved(good.workspace, -bytes + 256);
    EXPECT_EQ(refused_field(spec, args), "workspace");
  }
  EXPECT_EQ(refused_with(gradient_spec(Operation::forward, false), &LaunchArgs::saved,
                         reinterpret_cast<const void*>(std::uintptr_t{20} << 34)),
            "saved");
}

TEST(GradientRules, WithoutImagesOnlyResultsAreThere) {
  ConvSpec spec = gradient_spec(Operation::weight_gradient);
  spec.input.n = 0;
  LaunchArgs args = addresses_for(spec);
  EXPECT_EQ(refusal(spec, args), "x: x is 0x400000000, must be null: the spec has no images");
  args.x = nullptr;
  EXPECT_EQ(refusal(spec, args), "dy: dy is 0x2000000000, must be null: the spec has no images");
  args.dy = nullptr;
  EXPECT_EQ(refusal(spec, args), "");
  args.w = at(std::uintptr_t{2} << 34);
  EXPECT_EQ(refusal(spec, args), "w: w is 0x800000000, must be null: the spec's operation has no part for it");
}

TEST(GradientRules, PackedWeightsTakeThePlaceOfW) {
  const ConvSpec spec = gradient_spec(Operation::data_gradient);
  LaunchArgs args = addresses_for(spec);
  EXPECT_EQ(refusal(spec, args, /*packed_weights=*/1024), "");
  args.packed_w = reinterpret_cast<const void*>(std::uintptr_t{20} << 34);
  EXPECT_NE(refusal(spec, args, 1024), "") << "both";
  args.w = nullptr;
  EXPECT_EQ(refusal(spec, args, 1024), "");
}

}  // namespace
}  // namespace jitconv::runtime_test
