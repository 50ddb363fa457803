// prepare(): which kernels it returns, what it compiles at the same time, what it reports, and what errors leave
// behind.
#include <algorithm>
#include <stdexcept>
#include <thread>
#include <vector>

#include "runtime_test_support.h"

namespace jitconv::runtime_test {
namespace {

std::vector<ConvSpec> new_specs(std::size_t count) {
  std::vector<ConvSpec> specs;
  while (specs.size() < count) specs.push_back(new_spec());
  return specs;
}

ConvSpec bad_spec(std::int64_t stride) {
  ConvSpec spec = new_spec();
  spec.stride = stride;
  return spec;
}

class PrepareTest : public RuntimeTest {
 protected:
  /// Options that record what is reported.
  PrepareOptions recording(int threads = 0) {
    PrepareOptions options;
    options.threads = threads;
    options.progress = [this](const Progress& progress) {
      EXPECT_EQ(std::this_thread::get_id(), caller_);
      EXPECT_EQ(progress.done, reports_.size() + 1);
      reports_.push_back(progress);
    };
    return options;
  }
  /// What was reported of a spec.
  Origin origin_of(std::size_t index) const {
    const auto found = std::find_if(reports_.begin(), reports_.end(),
                                    [index](const Progress& progress) { return progress.index == index; });
    EXPECT_NE(found, reports_.end()) << index;
    return found == reports_.end() ? Origin::failed : found->origin;
  }

  const Target target_ = parse_target("sm_90a");
  const std::thread::id caller_ = std::this_thread::get_id();
  std::vector<Progress> reports_;
};

TEST_F(PrepareTest, ReturnsTheKernelsOfCompileInTheOrderOfTheSpecs) {
  const std::vector<ConvSpec> specs = new_specs(7);
  const Kernel known = compile(specs[3], target_);
  const std::vector<Kernel> kernels = prepare(specs, target_);
  ASSERT_EQ(kernels.size(), specs.size());
  for (std::size_t i = 0; i < specs.size(); ++i) {
    EXPECT_EQ(kernels[i].spec(), codegen::canonical(specs[i]));
    EXPECT_EQ(&compile(specs[i], target_).source(), &kernels[i].source());
  }
  EXPECT_EQ(&kernels[3].source(), &known.source());
  EXPECT_EQ(fake_driver::calls(), std::vector<std::string>()) << "compiling for a target needs no driver";
}

TEST_F(PrepareTest, OptionsAreThoseOfCompile) {
  const std::vector<ConvSpec> specs = new_specs(2);
  PrepareOptions options;
  options.compile.line_info = true;
  const std::vector<Kernel> kernels = prepare(specs, target_, options);
  EXPECT_EQ(&kernels[1].source(), &compile(specs[1], target_, options.compile).source());
  EXPECT_NE(kernels[1].cache_key(), compile(specs[1], target_).cache_key());
}

TEST_F(PrepareTest, EqualSpecsAreCompiledOnce) {
  std::vector<ConvSpec> specs = new_specs(2);
  specs.push_back(specs[0]);
  specs.push_back(specs[1]);
  specs[3].epilogue.slope = 0.25f;  // another spelling of the same convolution
  const Statistics before = statistics();
  const std::vector<Kernel> kernels = prepare(specs, target_, recording());
  EXPECT_EQ(&kernels[0].source(), &kernels[2].source());
  EXPECT_EQ(&kernels[1].source(), &kernels[3].source());
  EXPECT_EQ(statistics().compilations, before.compilations + 2);
  EXPECT_EQ(std::count_if(reports_.begin(), reports_.end(),
                          [](const Progress& progress) { return progress.origin == Origin::compiler; }),
            2);
  EXPECT_EQ(origin_of(2), Origin::memory);
}

TEST_F(PrepareTest, AllThreadsCompile) {
  const ScopedVariable together("FAKE_NVRTC_TOGETHER", "4");
  EXPECT_EQ(prepare(new_specs(4), target_, recording(4)).size(), 4u);
}

TEST_F(PrepareTest, OneThreadTakesOneSpecAfterTheOtherAndRepetitionsLast) {
  std::vector<ConvSpec> specs = new_specs(2);
  specs.insert(specs.begin(), specs[0]);
  prepare(specs, target_, recording(1));
  const std::vector<Progress> expected = {
      {1, 3, 0, Origin::compiler}, {2, 3, 2, Origin::compiler}, {3, 3, 1, Origin::memory}};
  EXPECT_EQ(reports_, expected);
}

TEST_F(PrepareTest, ReportsWhereEachKernelCameFrom) {
  const std::vector<ConvSpec> specs = new_specs(3);
  runtime::compile_plan(codegen::make_plan(specs[0], target_));  // leaves it on disk only
  const Kernel in_memory = compile(specs[1], target_);
  prepare(specs, target_, recording());
  ASSERT_EQ(reports_.size(), 3u);
  for (const Progress& progress : reports_) EXPECT_EQ(progress.total, 3u);
  EXPECT_EQ(origin_of(0), Origin::disk);
  EXPECT_EQ(origin_of(1), Origin::memory);
  EXPECT_EQ(origin_of(2), Origin::compiler);
}

TEST_F(PrepareTest, TheFirstErrorInTheOrderOfTheSpecsComesWhenAllAreFinished) {
  const std::vector<ConvSpec> specs = {new_spec(), bad_spec(-7), new_spec(), bad_spec(0)};
  for (const int threads : {1, 4}) {
    reports_.clear();
    try {
      prepare(specs, target_, recording(threads));
      FAIL() << "nothing was thrown";
    } catch (const SpecError& error) {
      EXPECT_EQ(error.field(), "stride");
      EXPECT_NE(std::string(error.what()).find("-7"), std::string::npos) << error.what();
    }
    EXPECT_EQ(reports_.size(), specs.size());
    EXPECT_EQ(origin_of(1), Origin::failed);
    EXPECT_EQ(origin_of(3), Origin::failed);
  }
  const Statistics before = statistics();
  compile(specs[0], target_);
  compile(specs[2], target_);
  EXPECT_EQ(statistics().memory_hits, before.memory_hits + 2) << "the others stay in memory";
}

TEST_F(PrepareTest, ResultsWithoutKernelsAreSuchErrors) {
  std::vector<ConvSpec> specs = new_specs(2);
  specs[1].output_dtype = OutputType::f16;
  try {
    prepare(specs, target_);
    FAIL() << "nothing was thrown";
  } catch (const SpecError& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_EQ(error.field(), "output_dtype");
  }
}

TEST_F(PrepareTest, ACompilersErrorIsThrownAsItIs) {
  const ScopedVariable broken("FAKE_NVRTC_RESULT", "6");
  EXPECT_THROW(prepare(new_specs(3), target_, recording()), CompileError);
  EXPECT_EQ(reports_.size(), 3u);
}

TEST_F(PrepareTest, WhatProgressThrowsEndsIt) {
  const ScopedVariable slow("FAKE_NVRTC_MS", "50");
  const Statistics before = statistics();
  PrepareOptions options;
  options.threads = 1;
  int reports = 0;
  options.progress = [&](const Progress&) {
    ++reports;
    throw std::runtime_error("enough");
  };
  EXPECT_THROW(prepare(new_specs(20), target_, options), std::runtime_error);
  EXPECT_EQ(reports, 1);
  EXPECT_LT(statistics().compilations, before.compilations + 20);
}

TEST_F(PrepareTest, NothingToDoIsDone) { EXPECT_TRUE(prepare(std::vector<ConvSpec>{}, target_, recording()).empty()); }

TEST_F(PrepareTest, RefusesANegativeNumberOfThreads) {
  try {
    prepare(new_specs(1), target_, recording(-1));
    FAIL() << "nothing was thrown";
  } catch (const SpecError& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_EQ(error.field(), "threads");
  }
  EXPECT_TRUE(reports_.empty());
}

TEST_F(PrepareTest, LoadsKernelsOfTheCurrentDevice) {
  fake_driver::set_current_device(0);
  const std::vector<ConvSpec> specs = new_specs(3);
  const std::vector<Kernel> kernels = prepare(specs);
  EXPECT_EQ(fake_driver::count("cuLibraryLoadData"), 3);
  for (std::size_t i = 0; i < specs.size(); ++i) kernels[i].launch(nullptr, addresses_for(specs[i]));
  EXPECT_EQ(fake_driver::count("cuLibraryLoadData"), 3);
  EXPECT_EQ(&compile(specs[0]).source(), &kernels[0].source());
}

TEST_F(PrepareTest, AKernelThatDoesNotLoadIsItsSpecsError) {
  fake_driver::set_current_device(0);
  fake_driver::fail("cuLibraryLoadData", 2);  // out of memory
  EXPECT_THROW(prepare(new_specs(3), recording()), CudaError);
  EXPECT_EQ(std::count_if(reports_.begin(), reports_.end(),
                          [](const Progress& progress) { return progress.origin == Origin::failed; }),
            1);
}

}  // namespace
}  // namespace jitconv::runtime_test
