// Gradients of a convolution with an activation: what the spec may ask for, and the pass that multiplies dy by the
// derivative, as a part of plans of every family.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "codegen/activation_gradient/pass.h"
#include "codegen/cost.h"
#include "codegen/costs/costs.h"
#include "codegen/plan.h"
#include "codegen/source.h"
#include "codegen/spec_fields.h"
#include "codegen/text/emitter.h"
#include "jitconv/error.h"
#include "support/random_specs.h"
#include "unit/codegen/kernel_bodies.h"

namespace jitconv::codegen {
namespace {

const Target& hopper() {
  static const Target target = parse_target("sm_90a");
  return target;
}

std::string refusal(const std::string& text) {
  try {
    validate(parse_spec(text));
    return "";
  } catch (const SpecError& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_spec);
    return error.field() + ": " + error.what();
  }
}

constexpr const char* kShape = "input=2,5,9,11 weight=6,5,3,3 padding=1 ";

TEST(DyActivation, IsOfGradientsAlone) {
  for (const std::string_view name : kActivationNames) {
    const std::string text = kShape + ("dy_activation=" + std::string(name));
    EXPECT_EQ(refusal(text + " operation=data_gradient"), "");
    EXPECT_EQ(refusal(text + " operation=weight_gradient"), "");
    const std::string forward =
        "dy_activation: dy_activation is " + std::string(name) + ", must be none for forward, which has no dy";
    EXPECT_EQ(refusal(text), name == "none" ? "" : forward);
  }
}

TEST(DyActivation, OfLeakyReluNeedsASlopeAboveZero) {
  const std::string text = std::string(kShape) + "operation=data_gradient dy_activation=leaky_relu slope=";
  EXPECT_EQ(refusal(text + "1e-45"), "");
  for (const char* slope : {"0", "-0", "-0.5"})
    EXPECT_EQ(refusal(text + slope),
              "epilogue.slope: epilogue.slope is " + std::string(slope) +
                  ", must be above 0 for a dy_activation of leaky_relu, so that y has the sign of what the activation "
                  "was applied to");
  EXPECT_EQ(refusal(std::string(kShape) + "operation=data_gradient activation=leaky_relu slope=-0.5"), "");
}

TEST(DyActivation, KeepsTheParametersThatItUses) {
  const std::string text = std::string(kShape) + "operation=data_gradient slope=0.5 clamp_min=-1 clamp_max=2 ";
  const Epilogue unused;
  const auto parameters = [&](const std::string& activations) {
    return canonical(parse_spec(text + activations)).epilogue;
  };
  EXPECT_EQ(parameters("dy_activation=leaky_relu").slope, 0.5f);
  EXPECT_EQ(parameters("dy_activation=leaky_relu").clamp_max, unused.clamp_max);
  EXPECT_EQ(parameters("dy_activation=clamp").clamp_min, -1.0f);
  EXPECT_EQ(parameters("dy_activation=clamp").slope, unused.slope);
  EXPECT_EQ(parameters("dy_activation=relu").slope, unused.slope);
  EXPECT_EQ(parameters("dy_activation=relu").clamp_max, unused.clamp_max);
  EXPECT_EQ(parameters("dy_activation=clamp activation=leaky_relu").slope, 0.5f);
}

TEST(DyActivation, OfNoImagesIsNone) {
  const ConvSpec spec =
      parse_spec("input=0,5,9,11 weight=6,5,3,3 operation=weight_gradient dy_activation=leaky_relu slope=0.5");
  EXPECT_EQ(canonical(spec).dy_activation, Activation::none);
  EXPECT_EQ(canonical(spec).epilogue, Epilogue());
  EXPECT_EQ(make_plan(spec, hopper()).kernels.front().family(), Family::wgrad);
}

TEST(DyActivation, IsReadAndPrinted) {
  const ConvSpec spec = parse_spec("operation=data_gradient dy_activation=gelu");
  EXPECT_EQ(spec.dy_activation, Activation::gelu_erf);
  EXPECT_NE(to_string(spec).find(" dy_activation=gelu_erf"), std::string::npos);
  EXPECT_EQ(parse_spec(to_string(spec)), spec);
  EXPECT_NE(hash_value(spec), hash_value(parse_spec("operation=data_gradient dy_activation=gelu_tanh")));
}

TEST(DyActivation, ReadsAsMuchAgainAsDy) {
  for (const Operation operation : {Operation::data_gradient, Operation::weight_gradient}) {
    ConvSpec spec = parse_spec(std::string(kShape) + "dtype=bf16");
    spec.operation = operation;
    const Work before = work(spec);
    spec.dy_activation = Activation::relu;
    EXPECT_EQ(work(spec).bytes, before.bytes + 2.0 * 2 * 6 * 9 * 11) << to_string(operation);
    EXPECT_EQ(work(spec).flop, before.flop);
  }
}

/// "pack_weights(w >packed_w) wgmma(dz packed_w >dx)": kernels and the tensors of their parameters.
std::string kernels_of(const ConvPlan& plan) {
  std::string text;
  for (const KernelPlan& kernel : plan.kernels) {
    if (!text.empty()) text += ' ';
    std::string tensors;
    for (const Argument& argument : functions_of(kernel.family()).emit(kernel, "kernel").arguments) {
      if (!tensors.empty()) tensors += ' ';
      if (argument.written()) tensors += '>';
      tensors += test::name_of(argument.tensor, plan.scratch);
    }
    text += std::string(to_string(kernel.family())) + '(' + tensors + ')';
  }
  return text;
}

template <typename Predicate>
ConvPlan plan_that(const std::string& text, Predicate holds) {
  for (ConvPlan& plan : enumerate_plans(parse_spec(text), hopper(), SIZE_MAX))
    if (holds(plan)) return std::move(plan);
  ADD_FAILURE() << "no such plan for " << text;
  return {};
}

TEST(ActivationGradient, ComesFirstWhereNoWeightsArePacked) {
  const ConvPlan weights = make_plan(
      parse_spec("input=2,64,6,7 weight=64,64,3,3 bias operation=weight_gradient dy_activation=silu"), hopper());
  EXPECT_EQ(kernels_of(weights),
            "activation_gradient(dy saved >dz) wgrad(x dz >partial_sums) reduce(partial_sums >dw >db)");
  const ConvPlan strided = plan_that(
      "input=2,8,9,11 weight=12,8,3,3 stride=2 operation=data_gradient "
      "dy_activation=silu math=ieee activation=relu",
      [](const ConvPlan& plan) { return plan.family() == Family::direct; });
  EXPECT_EQ(kernels_of(strided),
            "transpose_weights(w >dense_w) activation_gradient(dy saved >dz) direct(dz dense_w >partial_sums) "
            "reduce(partial_sums >dx)");
}

constexpr const char* kTensorCores =
    "input=2,64,9,11 weight=72,64,3,3 padding=1 math=tf32 operation=data_gradient dy_activation=relu";

TEST(ActivationGradient, ComesBehindThePackingAndBeforeTheTransposition) {
  const ConvPlan plan = plan_that(kTensorCores, [](const ConvPlan& one) {
    const auto* t = one.tiling<WgmmaTiling>();
    return t != nullptr && t->packs_weights() && t->transposes_input() && t->split_k == 1;
  });
  EXPECT_EQ(kernels_of(plan),
            "pack_weights(w >packed_w) activation_gradient(dy saved >dz) transpose_input(dz >transposed_x) "
            "wgmma(transposed_x packed_w >dx)");
  EXPECT_EQ(plan.workspace_bytes() - plan.workspace_bytes_with_packed_weights(), plan.packed_weight_bytes());
  EXPECT_EQ(plan.scratch.front().name, "dz");
  EXPECT_EQ(plan.scratch.front().bytes, (2 * 72 * 9 * 11 * 4 + 255) / 256 * 256);
  // The pixels' kernel waits at its end, if at all.
  EXPECT_FALSE(plan.kernels[1].starts_early);
  EXPECT_FALSE(plan.kernels[2].starts_early);
  EXPECT_TRUE(plan.kernels[3].starts_early);
}

// dz in scratch is as dy, and not as what is transposed: floats are still to be rounded to TF32.
TEST(ActivationGradient, LeavesTheConvolutionAsItWas) {
  for (const char* layout : {" layout=nchw", " layout=nhwc"}) {
    const std::string with = kTensorCores + std::string(layout), without = with + " dy_activation=none";
    ConvSpec spec = parse_spec(with);
    const std::vector<ConvPlan> plans = enumerate_plans(spec, hopper(), SIZE_MAX);
    spec.dy_activation = Activation::none;
    const std::vector<ConvPlan> plain = enumerate_plans(spec, hopper(), SIZE_MAX);
    ASSERT_EQ(plans.size(), plain.size());
    for (std::size_t i = 0; i < plans.size(); ++i) {
      const KernelPlan &kernel = plans[i].convolution(), &other = plain[i].convolution();
      EXPECT_EQ(kernel.tiling, other.tiling);
      EXPECT_EQ(functions_of(kernel.family()).emit(kernel, "kernel").text,
                functions_of(other.family()).emit(other, "kernel").text);
      EXPECT_EQ(plans[i].cost,
                plain[i].cost + activation_gradient_cost(lower(canonical(parse_spec(with))), costs_of(hopper()).fma));
    }
  }
}

RC_GTEST_PROP(ActivationGradientProperty, EveryRegionIsWrittenBeforeItIsRead, ()) {
  ConvSpec spec = *test::valid_operations();
  spec.input.n = std::max<std::int64_t>(spec.input.n, 1);
  if (spec.operation == Operation::forward) spec.operation = Operation::data_gradient;
  if (spec.dy_activation == Activation::none) spec.dy_activation = Activation::tanh;
  for (const ConvPlan& plan : enumerate_plans(spec, hopper(), 40)) {
    std::set<Tensor> written, read;
    bool follows_activation = false;
    for (const KernelPlan& kernel : plan.kernels) {
      // It may not start before dz is complete: no kernel but the pass knows of that.
      RC_ASSERT(!follows_activation || !kernel.starts_early);
      follows_activation = kernel.family() == Family::activation_gradient;
      std::vector<Tensor> writes;
      for (const Argument& argument : functions_of(kernel.family()).emit(kernel, "kernel").arguments) {
        if (argument.written()) {
          writes.push_back(argument.tensor);
          continue;
        }
        RC_ASSERT(!is_scratch(argument.tensor) || written.contains(argument.tensor));
        RC_ASSERT(argument.tensor != Tensor::dy || follows_activation);
        read.insert(argument.tensor);
      }
      written.insert(writes.begin(), writes.end());
    }
    RC_ASSERT(read.contains(Tensor::dy) && read.contains(Tensor::saved));
    for (std::size_t region = 0; region < plan.scratch.size(); ++region)
      RC_ASSERT(read.contains(scratch_tensor(region)));
  }
}

TEST(ActivationGradient, IsExplained) {
  const ConvPlan plan = make_plan(parse_spec(kTensorCores), hopper());
  const auto note = std::ranges::find(plan.notes, "dy_activation", &Note::topic);
  ASSERT_NE(note, plan.notes.end());
  EXPECT_EQ(note->text.rfind("a pass before the gradient multiplies dy by the derivative of relu, modelled at ", 0),
            0u);
  EXPECT_NE(note->text.find("not fused into the gradient's loads"), std::string::npos);
  EXPECT_NE(to_string(plan).find("activation_gradient, "), std::string::npos);
}

/// The pass of a plan of one of these specs.
KernelPlan pass_of(const std::string& text) {
  const ConvPlan plan = make_plan(parse_spec(text), hopper());
  const auto pass = std::ranges::find(plan.kernels, Family::activation_gradient, &KernelPlan::family);
  return pass == plan.kernels.end() ? KernelPlan() : *pass;
}

TEST(ActivationGradient, TakesVectorsOf16BytesIfPointersAllowIt) {
  const std::string text = std::string(kShape) + "operation=weight_gradient dy_activation=relu ";
  const auto vector = [&](const std::string& more) {
    return std::get<ActivationGradientTiling>(pass_of(text + more).tiling).vector;
  };
  EXPECT_EQ(vector("dtype=f32"), 4);
  EXPECT_EQ(vector("dtype=bf16"), 8);
  EXPECT_EQ(vector("dtype=bf16 alignment=256"), 8);
  EXPECT_EQ(vector("dtype=f16 alignment=4"), 2);
  EXPECT_EQ(vector("dtype=f16 alignment=2"), 1);
  EXPECT_EQ(vector("dtype=f32 alignment=4"), 1);
}

TEST(ActivationGradient, CountsElementsIn64BitsWhereTheyNeedThem) {
  // 2^31 - 2^11 elements and a block, and one channel more.
  const std::string gradient = " operation=data_gradient dy_activation=relu dtype=bf16";
  const KernelPlan narrow = pass_of("input=1,1,1,1048575 weight=2046,1,1,1" + gradient);
  EXPECT_FALSE(narrow.wide_index);
  const KernelPlan wide = pass_of("input=1,1,1,1048576 weight=2048,1,1,1" + gradient);
  EXPECT_TRUE(wide.wide_index);
  EXPECT_EQ(wide.launch.blocks, 1048576u);
  EXPECT_NE(functions_of(wide.family()).emit(wide, "kernel").text.find("const long long first"), std::string::npos);
}

TEST(ActivationGradient, RefusesMoreBlocksThanALaunchHas) {
  // 2^40 elements, a thread each.
  const ConvSpec spec = parse_spec(
      "input=1,1,1,1048576 weight=1048576,1,1,1 operation=data_gradient dy_activation=relu dtype=f16 alignment=2");
  try {
    make_plan(spec, hopper());
    FAIL() << "it was accepted";
  } catch (const SpecError& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_EQ(error.field(), "dy_activation");
    EXPECT_STREQ(
        error.what(),
        "dy_activation is relu, and its pass over dy takes 4294967296 thread blocks, must be at most 2^31 - 1");
  }
}

TEST(ActivationGradient, NamesWhatWasSaved) {
  for (const std::string_view name : kActivationNames) {
    if (name == "none") continue;
    const KernelPlan pass =
        pass_of(std::string(kShape) + "operation=weight_gradient dy_activation=" + std::string(name));
    const bool result = name == "relu" || name == "leaky_relu" || name == "clamp";
    EXPECT_NE(
        functions_of(pass.family())
            .emit(pass, "kernel")
            .text.find(result ? "activation_backward(float dy, float y)" : "activation_backward(float dy, float z)"),
        std::string::npos)
        << name;
  }
}

}  // namespace
}  // namespace jitconv::codegen
