// tune(): which candidate it takes, what is remembered where, and who asks for that. Fake NVRTC, invented times.
#include "runtime/tuning.h"

#include <set>

#include "../../support/no_threads.h"
#include "cache/store.h"
#include "runtime_test_support.h"

namespace jitconv::runtime_test {
namespace {

using Times = std::vector<std::optional<double>>;

class TuningTest : public RuntimeTest {
 protected:
  /// Has a time for every candidate: the slowest first, `fastest` before all.
  static runtime::TimeKernels faster(std::size_t fastest) {
    return [fastest](std::span<const Kernel> kernels, int) {
      Times ms;
      for (std::size_t i = 0; i < kernels.size(); ++i) ms.emplace_back(100.0 - static_cast<double>(i));
      ms.at(fastest) = 1.0;
      return ms;
    };
  }
  static Times never(std::span<const Kernel>, int) {
    ADD_FAILURE() << "measured what is remembered";
    return {};
  }
  Kernel tuned(const ConvSpec& spec, const runtime::TimeKernels& times, const TuneOptions& options = {}) const {
    return runtime::tune(spec, target_, options, times);
  }

  const Target target_ = parse_target("sm_90a");
};

TEST_F(TuningTest, TakesTheFastestAndRemembersIt) {
  const ConvSpec spec = new_spec();
  std::vector<std::string> plans;
  const Kernel kernel = tuned(spec, [&](std::span<const Kernel> kernels, int launches) {
    EXPECT_EQ(kernels.size(), 8u);
    EXPECT_EQ(launches, 15);
    for (const Kernel& one : kernels) plans.push_back(one.plan());
    return faster(3)(kernels, launches);
  });
  ASSERT_EQ(std::set(plans.begin(), plans.end()).size(), plans.size()) << "candidates are different plans";
  EXPECT_EQ(kernel.plan(), plans.at(3));
  EXPECT_EQ(tuned(spec, never).plan(), plans.at(3));
  EXPECT_EQ(tuned(spec, faster(2), {.again = true}).plan(), plans.at(2));
  EXPECT_EQ(tuned(spec, never).plan(), plans.at(2));
}

TEST_F(TuningTest, CandidatesAreOfEveryFamily) {
  std::set<codegen::Family> families, measured;
  ConvSpec spec = new_spec();
  spec.math = MathMode::tf32;
  for (const codegen::ConvPlan& plan : codegen::enumerate_plans(spec, target_, SIZE_MAX))
    families.insert(plan.family());
  tuned(spec, [&](std::span<const Kernel> kernels, int launches) {
    for (const Kernel& kernel : kernels) measured.insert(runtime::plan_of(kernel).family());
    return faster(0)(kernels, launches);
  });
  ASSERT_GT(families.size(), 1u);
  EXPECT_EQ(measured, families);
}

TEST_F(TuningTest, LeavesOutWhatCannotBeLaunched) {
  const ConvSpec spec = new_spec();
  const Kernel kernel = tuned(spec, [](std::span<const Kernel> kernels, int) {
    Times ms(kernels.size());
    ms.at(1) = 5.0;
    return ms;
  });
  EXPECT_EQ(runtime::remembered_choice(spec, target_), runtime::plan_of(tuned(spec, never)));
  EXPECT_NE(kernel.plan(), codegen::to_string(codegen::make_plan(spec, target_)));
  const ConvSpec other = new_spec();
  EXPECT_THROW(tuned(other, [](std::span<const Kernel> kernels, int) { return Times(kernels.size()); }), CudaError);
  EXPECT_EQ(runtime::remembered_choice(other, target_), std::nullopt);
}

TEST_F(TuningTest, WithoutThreadsTheCallerCompiles) {
  const test::NoThreads none;
  const ConvSpec spec = new_spec();
  std::size_t compiled = 0;
  tuned(spec, [&](std::span<const Kernel> kernels, int launches) {
    compiled = kernels.size();
    return faster(0)(kernels, launches);
  });
  EXPECT_EQ(compiled, 8u);
}

TEST_F(TuningTest, IsInTheDiskCacheBesideTheKernels) {
  const ConvSpec spec = new_spec();
  const Kernel kernel = tuned(spec, faster(4));
  std::size_t found = 0;
  for (const cache::FileReport& file : runtime::disk_cache().verify()) {
    EXPECT_EQ(file.problem, std::nullopt);
    if (!file.entry || file.entry->kind != cache::EntryKind::choice) continue;
    const std::optional<cache::Entry> entry = runtime::disk_cache().load(file.entry->key);
    ASSERT_TRUE(entry);
    if (entry->description.at(1).value != to_string(kernel.spec())) continue;
    EXPECT_EQ(entry->payload, kernel.plan());
    ++found;
  }
  EXPECT_EQ(found, 1u);
}

TEST_F(TuningTest, CompileTakesItOnlyWhereTheEnvironmentAsks) {
  const ConvSpec spec = new_spec();
  const Kernel kernel = tuned(spec, faster(5));
  const std::string model = codegen::to_string(codegen::make_plan(spec, target_));
  ASSERT_NE(kernel.plan(), model);
  EXPECT_EQ(codegen::to_string(runtime::plan_to_build(spec, target_)), model);
  {
    const ScopedVariable nonsense("JITCONV_TUNE", "yes");
    EXPECT_EQ(codegen::to_string(runtime::plan_to_build(spec, target_)), model);
  }
  const ScopedVariable saved("JITCONV_TUNE", "saved");
  const Kernel compiled = compile(spec, target_);
  EXPECT_EQ(compiled.plan(), kernel.plan());
  EXPECT_NE(compiled.explain().find("the fastest candidate that was measured"), std::string::npos);
  EXPECT_EQ(runtime::remembered_choice(spec, parse_target("sm_90")), std::nullopt) << "another GPU has its own";
}

// The fake driver has no memory to measure in: compile() then does what it does without tuning.
TEST_F(TuningTest, CompileGoesOnWhereNothingCanBeMeasured) {
  const ScopedVariable asked("JITCONV_TUNE", "1");
  const ConvSpec spec = new_spec();
  const Kernel kernel = compile(spec);
  EXPECT_EQ(kernel.plan(), codegen::to_string(codegen::make_plan(spec, kernel.target())));
  EXPECT_EQ(runtime::remembered_choice(spec, kernel.target()), std::nullopt);
}

TEST_F(TuningTest, RefusesCountsBelowOne) {
  const ConvSpec spec = new_spec();
  for (const TuneOptions& options : {TuneOptions{.candidates = 0}, TuneOptions{.launches = -1}}) {
    try {
      tuned(spec, never, options);
      ADD_FAILURE() << "accepted";
    } catch (const SpecError& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_EQ(error.field(), options.candidates < 1 ? "candidates" : "launches");
    }
  }
}

TEST_F(TuningTest, WithoutOutputsNothingIsMeasured) {
  ConvSpec spec = new_spec();
  spec.input.n = 0;
  EXPECT_EQ(tuned(spec, never).plan(), codegen::to_string(codegen::make_plan(spec, target_)));
}

}  // namespace
}  // namespace jitconv::runtime_test
