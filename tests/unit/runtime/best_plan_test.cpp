// compile_best(): a plan that the compiler spoils gives way to the next, from the cache as well, and never to an error.
// The backend compiles nothing; its log is what a test wants.
#include <set>

#include "codegen/source.h"
#include "runtime/backend.h"
#include "runtime_test_support.h"

namespace jitconv::runtime_test {
namespace {

/// Spoils the first `spoiled` sources it sees, always the same ones; refuses to compile from the `refused`-th on.
class SpoilingBackend final : public runtime::Backend {
 public:
  SpoilingBackend(std::size_t spoiled, std::size_t refused) : spoiled_(spoiled), refused_(refused) {}

  runtime::ImageFormat format() const override { return {cache::EntryKind::host, "spoiling-", ".fake"}; }
  runtime::CompilerIdentity compiler() const override { return {"/usr/bin/fake", "1.0", std::to_string(spoiled_)}; }
  std::string_view fingerprint() const override { return {}; }
  std::vector<std::string> options(const codegen::KernelSource& source, const CompileOptions&) const override {
    return source.options;
  }
  runtime::Binary compile(const codegen::KernelSource& source, const std::vector<std::string>&) const override {
    if (seen.size() >= refused_) throw CompileError(ErrorCode::compile_failed, "the compiler has had enough", "");
    seen.push_back(source.text);
    return {"image", seen.size() <= spoiled_ ? kSpoiled : "", /*from_cache=*/false};
  }

  int ensure_context() const override { return 0; }
  void require_fitting_device(const Target&, int) const override {}
  std::shared_ptr<runtime::LoadedImage> load(const std::string&) const override { return nullptr; }
  runtime::DeviceKernel kernel(const runtime::LoadedImage&, const std::string&) const override { return {}; }
  runtime::DeviceKernelInfo prepare(runtime::DeviceKernel, int, std::uint32_t) const override { return {}; }
  bool refuses_image(const Error&) const override { return false; }
  bool is_capturing(void*) const override { return false; }
  void launch(const runtime::LaunchStep&, void*, void**, bool) const override {}

  static constexpr const char* kSpoiled =
      "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to "
      "insufficient register resources for the wgmma pipeline in the function 'conv'\n";
  mutable std::vector<std::string> seen;  ///< sources compiled, in order

 private:
  std::size_t spoiled_, refused_;
};

/// A convolution that tensor cores may compute, another one at each call.
codegen::ConvPlan new_wgmma_plan() {
  ConvSpec spec = new_spec();
  spec.input.c = spec.weight.c = 64;
  spec.weight.k = 128;
  spec.math = MathMode::tf32;
  for (codegen::ConvPlan& plan : codegen::enumerate_plans(spec, parse_target("sm_90a"), SIZE_MAX)) {
    if (plan.family() != codegen::Family::wgmma) continue;
    plan.notes = {{"topic", "of the plan"}};
    return plan;
  }
  throw std::logic_error("no wgmma plan for " + to_string(spec));
}

std::size_t times(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++count;
  return count;
}

using BestPlanTest = RuntimeTest;

TEST_F(BestPlanTest, IsTheFirstAsLongAsTheCompilerKeepsIt) {
  const SpoilingBackend backend(0, SIZE_MAX);
  const codegen::ConvPlan best = new_wgmma_plan();
  const Kernel kernel = runtime::compile_best(best, {}, backend);
  EXPECT_EQ(backend.seen.size(), 1u);
  EXPECT_EQ(runtime::plan_of(kernel), best);
}

TEST_F(BestPlanTest, IsTheNextWithoutADefect) {
  const SpoilingBackend backend(2, SIZE_MAX);
  const codegen::ConvPlan best = new_wgmma_plan();
  const Kernel kernel = runtime::compile_best(best, {}, backend);
  const codegen::ConvPlan& plan = runtime::plan_of(kernel);
  ASSERT_EQ(backend.seen.size(), 3u);
  EXPECT_EQ(std::set<std::string>(backend.seen.begin(), backend.seen.end()).size(), 3u);
  EXPECT_EQ(kernel.source(), backend.seen.back());
  EXPECT_EQ(plan.spec, best.spec);
  EXPECT_NE(plan.convolution().tiling, best.convolution().tiling);
  EXPECT_GE(plan.cost, best.cost);
  const std::string text = kernel.explain();
  EXPECT_NE(text.find("topic: of the plan"), std::string::npos) << text;
  EXPECT_EQ(times(text, "wgmma: the compiler spoils the candidate modelled at"), 2u) << text;
  EXPECT_EQ(times(text,
                  "us: (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized due to "
                  "insufficient register resources for the wgmma pipeline\n"),
            2u)
      << text;
  EXPECT_EQ(text.find("slow path"), std::string::npos) << text;
}

TEST_F(BestPlanTest, AnImageFromTheCacheIsHeldToTheSame) {
  const codegen::ConvPlan best = new_wgmma_plan();
  const SpoilingBackend first(1, SIZE_MAX);
  const Kernel cold = runtime::compile_best(best, {}, first);
  const SpoilingBackend again(1, /*refused=*/0);
  const Kernel warm = runtime::compile_best(best, {}, again);
  EXPECT_TRUE(warm.from_cache());
  EXPECT_EQ(warm.source(), cold.source());
  EXPECT_EQ(warm.cache_key(), cold.cache_key());
  EXPECT_EQ(warm.explain(), cold.explain());
  EXPECT_NE(warm.source(), codegen::generate(best).text);
}

TEST_F(BestPlanTest, IsTheFirstAfterAllIfAFewOthersAreNoBetter) {
  const SpoilingBackend backend(SIZE_MAX, SIZE_MAX);
  const codegen::ConvPlan best = new_wgmma_plan();
  const Kernel kernel = runtime::compile_best(best, {}, backend);
  EXPECT_EQ(backend.seen.size(), 5u);
  EXPECT_EQ(kernel.source(), backend.seen.front());
  EXPECT_EQ(kernel.source(), codegen::generate(best).text);
  EXPECT_EQ(times(kernel.explain(), "the compiler spoils"), 5u);
  EXPECT_NE(kernel.explain().find("slow path: the first candidate is used as it is"), std::string::npos);
}

TEST_F(BestPlanTest, WhatCannotBeCompiledIsNoReasonToFail) {
  const SpoilingBackend backend(SIZE_MAX, /*refused=*/2);
  const codegen::ConvPlan best = new_wgmma_plan();
  const Kernel kernel = runtime::compile_best(best, {}, backend);
  EXPECT_EQ(kernel.source(), codegen::generate(best).text);
  EXPECT_NE(kernel.explain().find("the compiler has had enough"), std::string::npos) << kernel.explain();

  // But the first is.
  const SpoilingBackend broken(0, /*refused=*/0);
  EXPECT_THROW(runtime::compile_best(new_wgmma_plan(), {}, broken), CompileError);
}

TEST_F(BestPlanTest, OtherFamiliesAreTakenAsTheyAre) {
  const SpoilingBackend backend(SIZE_MAX, SIZE_MAX);
  const codegen::ConvPlan plan = codegen::make_plan(new_spec(), parse_target("sm_90a"));
  ASSERT_EQ(plan.family(), codegen::Family::direct);
  EXPECT_EQ(runtime::plan_of(runtime::compile_best(plan, {}, backend)), plan);
  EXPECT_EQ(backend.seen.size(), 1u);
}

// compile() goes the same way; the fake NVRTC's log says that the first kernel of every source spills.
TEST_F(BestPlanTest, IsWhatCompileMakes) {
  const ConvSpec spec = new_wgmma_plan().spec;
  const Target target = parse_target("sm_90a");
  ASSERT_EQ(codegen::make_plan(spec, target).family(), codegen::Family::wgmma);
  const Statistics before = statistics();
  const Kernel kernel = compile(spec, target);
  EXPECT_EQ(statistics().compilations, before.compilations + 5);
  EXPECT_EQ(times(kernel.explain(), "us: 24 bytes of a thread's values are in local memory\n"), 5u) << kernel.explain();
  EXPECT_EQ(&compile(spec, target).source(), &kernel.source());
  EXPECT_EQ(statistics().compilations, before.compilations + 5);
}

}  // namespace
}  // namespace jitconv::runtime_test
