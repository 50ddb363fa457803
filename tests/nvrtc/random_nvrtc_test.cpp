// Random valid specs of every type and layout compile, which the documented configurations, all f32 and NCHW, do not
// show; and so does every kind of plan the tuner may ask for. No GPU.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <random>
#include <set>

#include "codegen/wgmma_rows/tiling.h"
#include "nvrtc/compile_all.h"
#include "support/full_run.h"
#include "support/random_specs.h"

namespace jitconv::test {
namespace {

/// So many in all, and the first of them in every run.
std::size_t share_of(std::size_t all, std::size_t share) { return is_full_run() ? all : share; }
const std::size_t kSpecs = share_of(300, 120), kTensorPlans = share_of(100, 50), kTensorPlansToNhwc = share_of(50, 24),
                  kStridedGradients = share_of(100, 50);
constexpr std::size_t kPointwisePlans = 60, kRowPlans = 40;

void print_rest(std::size_t all, std::size_t share) {
  if (share < all) std::printf("%zu of %zu; ./dev test --full compiles all\n", share, all);
}

/// The same specs in every run: fixed seeds, and type and layouts by turns, so that each combination comes up equally
/// often.
std::vector<ConvSpec> random_specs() {
  const rc::Gen<ConvSpec> generator = valid_specs();
  std::vector<ConvSpec> specs;
  for (std::uint64_t seed = 0; specs.size() < kSpecs; ++seed) {
    ConvSpec spec = generator(rc::Random(seed), /*size=*/100).value();
    if (spec.input.n == 0) spec.input.n = 1;
    const std::size_t turn = specs.size() % 12;
    spec.dtype = static_cast<DataType>(turn % 3);
    spec.input_layout = static_cast<Layout>(turn / 3 % 2);
    spec.output_layout = static_cast<Layout>(turn / 6);
    spec.alignment = std::max(spec.alignment, element_bytes(spec.dtype));
    specs.push_back(spec);
  }
  return specs;
}

/// As above, in the types by turns, with enough channels that tensor cores are worth it.
void add_random_tensor_plans(std::vector<codegen::ConvPlan>& plans, Layout output_layout, std::size_t count) {
  SpecLimits limits;
  limits.channels_per_group = 160;
  const rc::Gen<ConvSpec> generator = valid_specs(limits);
  const std::size_t wanted = plans.size() + count;
  for (std::uint64_t seed = 0; plans.size() < wanted; ++seed) {
    ConvSpec spec = generator(rc::Random(seed), /*size=*/100).value();
    spec.input.n = std::max<std::int64_t>(spec.input.n, 1);
    spec.dtype = static_cast<DataType>(seed % 3);
    spec.math = MathMode::tf32;
    spec.output_layout = output_layout;
    spec.alignment = std::max<std::int64_t>(spec.alignment, 16);
    codegen::ConvPlan plan = codegen::make_plan(spec, parse_target("sm_90a"));
    if (plan.family() == codegen::Family::wgmma) plans.push_back(std::move(plan));
  }
}

std::vector<codegen::ConvPlan> random_tensor_plans() {
  std::vector<codegen::ConvPlan> plans;
  add_random_tensor_plans(plans, Layout::nchw, kTensorPlans);
  add_random_tensor_plans(plans, Layout::nhwc, kTensorPlansToNhwc);
  return plans;
}

/// Any of the plans of random specs of the pointwise family: it has few kinds of kernels, and a tuner may ask for each.
std::vector<codegen::ConvPlan> random_pointwise_plans() {
  std::vector<codegen::ConvPlan> plans;
  std::mt19937_64 random(1);
  const auto below = [&random](std::uint64_t end) { return static_cast<std::int64_t>(random() % end); };
  while (plans.size() < kPointwisePlans) {
    ConvSpec spec;
    spec.groups = 1 + below(4) / 3;
    spec.weight = {spec.groups * (1 + below(300)), 8 * (2 + below(60)), 1, 1};
    spec.input = {1 + below(20), spec.weight.c * spec.groups, 1 + below(60), 4 * (1 + below(20))};
    spec.math = MathMode::tf32;
    spec.epilogue.bias = below(2) == 1;
    spec.epilogue.residual = below(2) == 1;
    spec.epilogue.activation = static_cast<Activation>(below(static_cast<std::uint64_t>(Activation::clamp) + 1));
    std::vector<codegen::ConvPlan> all = codegen::enumerate_plans(spec, parse_target("sm_90a"), SIZE_MAX);
    std::erase_if(all, [](const codegen::ConvPlan& plan) { return plan.family() != codegen::Family::pointwise; });
    plans.push_back(std::move(all.at(static_cast<std::size_t>(below(all.size())))));
  }
  return plans;
}

/// The same of the family that loads each input row once, of all types.
std::vector<codegen::ConvPlan> random_row_plans() {
  std::vector<codegen::ConvPlan> plans;
  std::mt19937_64 random(2);
  const auto below = [&random](std::uint64_t end) { return static_cast<std::int64_t>(random() % end); };
  while (plans.size() < kRowPlans) {
    ConvSpec spec;
    spec.weight = {1 + below(64), 1 + below(160), 2 + below(3), 1 + below(5)};
    spec.input = {1 + below(9), spec.weight.c, 10 + below(300), 10 + below(600)};
    spec.dtype = static_cast<DataType>(below(3));
    spec.math = MathMode::tf32;
    spec.dilation = Size2(1 + below(2), 1 + below(2));
    spec.epilogue.bias = below(2) == 1;
    spec.epilogue.residual = below(2) == 1;
    spec.epilogue.activation = static_cast<Activation>(below(static_cast<std::uint64_t>(Activation::clamp) + 1));
    std::vector<codegen::ConvPlan> all = codegen::enumerate_plans(spec, parse_target("sm_90a"), SIZE_MAX);
    std::erase_if(all, [](const codegen::ConvPlan& plan) { return plan.family() != codegen::Family::wgmma_rows; });
    if (!all.empty()) plans.push_back(std::move(all.at(static_cast<std::size_t>(below(all.size())))));
  }
  return plans;
}

TEST(RandomRowPlans, CompileToWhatTheirPlansSay) {
  std::vector<CompileJob> jobs;
  for (codegen::ConvPlan& plan : random_row_plans()) jobs.push_back({to_string(plan.spec), std::move(plan)});
  const std::vector<CompileResult> results = compile_all(jobs);
  for (const CompileResult& result : results) {
    SCOPED_TRACE(result.name + '\n' + codegen::to_string(result.plan));
    const codegen::KernelPlan& kernel = result.plan.convolution();
    const codegen::WgmmaRowsGeometry geometry(kernel.problem, std::get<codegen::WgmmaRowsTiling>(kernel.tiling));
    EXPECT_EQ(result.error, "");
    EXPECT_EQ(result.defect, "");
    EXPECT_EQ(result.spill_bytes, 0);
    // Registers that move are counted from what the launch has.
    EXPECT_LE(result.resources.registers, geometry.launch_registers());
    if (geometry.consumer_registers() != geometry.launch_registers()) {
      EXPECT_EQ(result.resources.registers, geometry.launch_registers());
    }
    EXPECT_LE(result.seconds, 10);
  }
  std::printf("%s\n", summary(results).c_str());
}

TEST(RandomPointwisePlans, CompileToWhatTheirPlansSay) {
  std::vector<CompileJob> jobs;
  for (codegen::ConvPlan& plan : random_pointwise_plans()) jobs.push_back({to_string(plan.spec), std::move(plan)});
  const std::vector<CompileResult> results = compile_all(jobs);
  for (const CompileResult& result : results) {
    SCOPED_TRACE(result.name + '\n' + codegen::to_string(result.plan));
    EXPECT_EQ(result.error, "");
    EXPECT_EQ(result.defect, "");
    EXPECT_EQ(result.spill_bytes, 0);
    EXPECT_EQ(result.resources.registers, codegen::PointwiseTiling::kLaunchRegisters);
    EXPECT_LE(result.seconds, 10);
  }
  std::printf("%s\n", summary(results).c_str());
}

/// Whether the compiler has spoiled the plan. It may, a plan in a hundred, of the rarer activations; compile() then
/// takes another.
bool is_spoiled(const CompileResult& result) {
  if (result.defect.empty()) {
    EXPECT_EQ(result.spill_bytes, 0);
    return false;
  }
  EXPECT_EQ(fault_of_replacement(result), "");
  return true;
}

TEST(RandomTensorPlans, CompileToWhatTheirPlansSay) {
  std::vector<CompileJob> jobs;
  for (codegen::ConvPlan& plan : random_tensor_plans()) jobs.push_back({to_string(plan.spec), std::move(plan)});
  const std::vector<CompileResult> results = compile_all(jobs);
  std::size_t spoiled = 0;
  for (const CompileResult& result : results) {
    SCOPED_TRACE(result.name + '\n' + codegen::to_string(result.plan));
    EXPECT_EQ(result.error, "");
    EXPECT_LE(result.seconds, 10);
    if (is_spoiled(result)) ++spoiled;
  }
  print_rest(150, kTensorPlans + kTensorPlansToNhwc);
  EXPECT_LE(spoiled, kTensorPlans / 50);
  std::printf("%s; %zu spoiled\n", summary(results).c_str(), spoiled);
}

/// Gradients with a stride, of few channels and of many, in the types and layouts by turns.
std::vector<codegen::ConvPlan> random_strided_gradients() {
  SpecLimits limits;
  limits.channels_per_group = 160;
  const rc::Gen<ConvSpec> many = valid_specs(limits), few = valid_specs();
  std::vector<codegen::ConvPlan> plans;
  for (std::uint64_t seed = 0; plans.size() < kStridedGradients; ++seed) {
    ConvSpec spec = (seed % 4 == 0 ? few : many)(rc::Random(seed), /*size=*/100).value();
    if (spec.stride == Size2(1)) continue;
    spec.operation = Operation::data_gradient;
    spec.input.n = std::max<std::int64_t>(spec.input.n, 1);
    spec.dtype = static_cast<DataType>(seed % 3);
    spec.math = MathMode::tf32;
    spec.input_layout = static_cast<Layout>(seed / 3 % 2);
    spec.output_layout = static_cast<Layout>(seed / 6 % 2);
    spec.alignment = std::max<std::int64_t>(spec.alignment, 16);
    plans.push_back(codegen::make_plan(spec, parse_target("sm_90a")));
  }
  return plans;
}

TEST(RandomStridedGradients, CompileToWhatTheirPlansSay) {
  std::vector<CompileJob> jobs;
  for (codegen::ConvPlan& plan : random_strided_gradients()) jobs.push_back({to_string(plan.spec), std::move(plan)});
  const std::vector<CompileResult> results = compile_all(jobs);
  std::map<std::string_view, int> families;
  std::size_t spoiled = 0;
  for (const CompileResult& result : results) {
    SCOPED_TRACE(result.name + '\n' + codegen::to_string(result.plan));
    ++families[to_string(result.plan.family())];
    EXPECT_EQ(result.error, "");
    EXPECT_LE(result.seconds, 10);
    // FMA kernels are those of forward convolutions: RandomSpecs says how often their registers are misjudged.
    if (!codegen::uses_tensor_cores(result.plan.family())) continue;
    if (is_spoiled(result)) ++spoiled;
  }
  print_rest(100, kStridedGradients);
  EXPECT_LE(spoiled, kStridedGradients / 50);
  for (const auto& [family, count] : families) std::printf("%s: %d\n", std::string(family).c_str(), count);
  std::printf("%s\n", summary(results).c_str());
}

TEST(RandomSpecs, Compile) {
  std::vector<CompileJob> jobs;
  std::set<codegen::Family> families;
  for (const ConvSpec& spec : random_specs()) {
    jobs.push_back({to_string(spec), codegen::make_plan(spec, parse_target("sm_90a"))});
    families.insert(jobs.back().plan.family());
  }
  EXPECT_EQ(families.count(codegen::Family::direct), 1u);
  EXPECT_EQ(families.count(codegen::Family::depthwise), 1u);
  const std::vector<CompileResult> results = compile_all(jobs);
  std::size_t spilling = 0;
  for (const CompileResult& result : results) {
    EXPECT_EQ(result.error, "") << result.name;
    EXPECT_GT(result.resources.registers, 0) << result.name;
    EXPECT_LE(result.seconds, 10) << result.name;
    if (result.spill_bytes > 0) {
      ++spilling;
      std::printf("spills %lld bytes: %s\n%s", static_cast<long long>(result.spill_bytes), result.name.c_str(),
                  codegen::to_string(result.plan).c_str());
    }
  }
  std::printf("%s\n", summary(results).c_str());
  print_rest(300, kSpecs);
  // The register estimate of the cost model may miss now and then; more often than this and it is wrong.
  EXPECT_LE(spilling, kSpecs / 50);
}

}  // namespace
}  // namespace jitconv::test
