// compile() for the current device and launch(), on the fake driver: which calls are made, what a launch is given, what
// happens when any of the calls fails.
#include <thread>

#include "codegen/plan.h"
#include "runtime/launch_rules.h"
#include "runtime_test_support.h"

namespace jitconv::runtime_test {
namespace {

class LaunchTest : public RuntimeTest {
 protected:
  void SetUp() override {
    RuntimeTest::SetUp();
    fake_driver::set_current_device(0);
    fake_driver::expect_arguments(0);
  }
};

TEST_F(LaunchTest, PassesGeometryStreamAndPointersInTheSourcesOrder) {
  ConvSpec spec = new_spec();
  spec.epilogue.bias = spec.epilogue.residual = true;
  const Kernel kernel = compile(spec);
  const std::vector<codegen::KernelEntry>& entries = runtime::source_of(kernel).entries;
  ASSERT_EQ(entries.size(), 1u);
  const codegen::KernelEntry& entry = entries.front();
  fake_driver::expect_arguments(entry.arguments.size());
  const LaunchArgs args = addresses_for(spec);
  int stream = 0;
  kernel.launch(&stream, args);

  ASSERT_EQ(fake_driver::launches().size(), 1u);
  const fake_driver::Launch launch = fake_driver::launches().front();
  EXPECT_EQ(launch.kernel, entry.name);
  EXPECT_EQ(launch.grid, entry.grid);
  EXPECT_EQ(launch.threads, entry.threads);
  EXPECT_EQ(launch.shared_bytes, entry.shared_bytes);
  EXPECT_EQ(launch.stream, &stream);
  for (std::size_t i = 0; i < entry.arguments.size(); ++i) {
    EXPECT_EQ(launch.arguments[i], runtime::given_pointers(args)[static_cast<std::size_t>(entry.arguments[i].tensor)])
        << entry.arguments[i].name;
  }
}

TEST_F(LaunchTest, TargetIsTheDevicesOwn) {
  const Target target = current_target();
  EXPECT_EQ(target.arch(), "sm_90a");
  EXPECT_EQ(target.sm_count, 114);
  EXPECT_EQ(target.shared_bytes_per_block, 232448);
  EXPECT_EQ(compile(new_spec()).target(), target);
}

TEST_F(LaunchTest, AfterCompileALaunchIsTwoCalls) {
  const ConvSpec spec = new_spec();
  const Kernel kernel = compile(spec);
  EXPECT_EQ(kernel.resources().front().registers, 77) << "from the driver, once it knows";
  const std::size_t before = fake_driver::calls().size();
  kernel.launch(nullptr, addresses_for(spec));
  std::vector<std::string> calls = fake_driver::calls();
  calls.erase(calls.begin(), calls.begin() + static_cast<std::ptrdiff_t>(before));
  EXPECT_EQ(calls, (std::vector<std::string>{"cuCtxGetDevice", "cuLaunchKernel"}));
}

// All kernels of a launch but the first may start before the one before has finished.
TEST_F(LaunchTest, SaysWhichKernelsMayOverlap) {
  const Target target = current_target();
  const ConvSpec spec = parse_spec("input=1,512,14,14 weight=512,512,3,3 padding=1 math=tf32");
  for (const std::size_t entries : {std::size_t{2}, std::size_t{3}}) {
    for (codegen::ConvPlan& plan : codegen::enumerate_plans(spec, target, SIZE_MAX)) {
      if (codegen::generate(plan).entries.size() != entries) continue;
      const Kernel kernel = runtime::compile_plan(std::move(plan));
      const LaunchArgs args = addresses_for(kernel.spec());
      const std::size_t before = fake_driver::launches().size();
      kernel.launch(nullptr, args);
      kernel.launch(nullptr, args);
      const std::vector<fake_driver::Launch> launches = fake_driver::launches();
      ASSERT_EQ(launches.size(), before + 2 * entries);
      for (std::size_t i = 0; i < 2 * entries; ++i)
        EXPECT_EQ(launches[before + i].may_overlap, i % entries != 0) << launches[before + i].kernel;
      break;
    }
  }
}

TEST_F(LaunchTest, KernelForATargetLoadsAtFirstLaunch) {
  const ConvSpec spec = new_spec();
  const Kernel kernel = compile(spec, current_target());
  EXPECT_EQ(fake_driver::count("cuLibraryLoadData"), 0);
  kernel.launch(nullptr, addresses_for(spec));
  kernel.launch(nullptr, addresses_for(spec));
  EXPECT_EQ(fake_driver::count("cuLibraryLoadData"), 1);
  EXPECT_EQ(fake_driver::launches().size(), 2u);
}

TEST_F(LaunchTest, AThreadWithoutAContextGetsThePrimaryOneOfDevice0) {
  const ConvSpec spec = new_spec();
  fake_driver::set_current_device(-1);
  const Kernel kernel = compile(spec);
  kernel.launch(nullptr, addresses_for(spec));
  std::thread([&] { kernel.launch(nullptr, addresses_for(spec)); }).join();
  EXPECT_EQ(fake_driver::launches().size(), 2u);
  EXPECT_EQ(fake_driver::retained_primary_contexts(), 1);
}

TEST_F(LaunchTest, ASecondDeviceIsPreparedFromTheSameLibrary) {
  const ConvSpec spec = new_spec();
  const Kernel kernel = compile(spec);
  fake_driver::set_current_device(1);
  kernel.launch(nullptr, addresses_for(spec));
  EXPECT_EQ(fake_driver::count("cuLibraryLoadData"), 1);
  EXPECT_EQ(fake_driver::count("cuFuncLoad"), 2);
  EXPECT_EQ(compile(spec).cache_key(), kernel.cache_key());
}

TEST_F(LaunchTest, ManyThreadsLoadAColdKernelOnce) {
  const ConvSpec spec = new_spec();
  const Kernel kernel = compile(spec, current_target());
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) threads.emplace_back([&] { kernel.launch(nullptr, addresses_for(spec)); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(fake_driver::launches().size(), 8u);
  EXPECT_EQ(fake_driver::count("cuLibraryLoadData"), 1);
}

TEST_F(LaunchTest, KernelOfAnotherArchitectureIsRefusedByName) {
  const ConvSpec spec = new_spec();
  const Kernel kernel = compile(spec, parse_target("sm_80"));
  try {
    kernel.launch(nullptr, addresses_for(spec));
    FAIL() << "launched";
  } catch (const CudaError& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_NE(std::string(error.what()).find("compiled for sm_80"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("sm_90a"), std::string::npos) << error.what();
  }
  EXPECT_EQ(fake_driver::count("cuLibraryLoadData"), 0);
}

TEST_F(LaunchTest, AColdKernelDoesNotDisturbACapture) {
  const ConvSpec spec = new_spec();
  const Kernel kernel = compile(spec, current_target());
  fake_driver::set_capturing(true);
  try {
    kernel.launch(nullptr, addresses_for(spec));
    FAIL() << "launched";
  } catch (const CudaError& error) {
    EXPECT_EQ(error.result(), 900);
    EXPECT_NE(std::string(error.what()).find("before the capture"), std::string::npos) << error.what();
  }
  EXPECT_EQ(fake_driver::count("cuLibraryLoadData"), 0);
  fake_driver::set_capturing(false);
  runtime::prepare(kernel);
  fake_driver::set_capturing(true);
  kernel.launch(nullptr, addresses_for(spec));
  EXPECT_EQ(fake_driver::launches().size(), 1u);
}

TEST_F(LaunchTest, CachedImageTheDriverRefusesIsCompiledAgainOnce) {
  for (const char* call : {"cuLibraryLoadData", "cuLibraryGetKernel", "cuKernelGetFunction", "cuFuncLoad"}) {
    const ConvSpec spec = new_spec();
    const codegen::ConvPlan plan = codegen::make_plan(spec, current_target());
    runtime::compile_plan(plan);
    const Kernel kernel = runtime::compile_plan(plan);
    ASSERT_TRUE(kernel.from_cache());
    const std::string& old_image = kernel.image();
    const std::string copy = old_image;

    fake_driver::fail(call, 200);
    const Statistics before = statistics();
    kernel.launch(nullptr, addresses_for(spec));
    EXPECT_EQ(statistics().compilations, before.compilations + 1) << call;
    EXPECT_FALSE(kernel.from_cache());
    EXPECT_EQ(old_image, copy) << "references stay valid";

    // The second image is not from the cache: if that is refused too, compiling once more would not help.
    const Kernel again = runtime::compile_plan(plan);
    ASSERT_TRUE(again.from_cache()) << "the new image replaced the old one";
    fake_driver::fail(call, 200, 2);
    EXPECT_THROW(again.launch(nullptr, addresses_for(spec)), CudaError);
    EXPECT_EQ(statistics().compilations, before.compilations + 2);
    EXPECT_NO_THROW(again.launch(nullptr, addresses_for(spec))) << "nothing is remembered of the failure";
  }
}

TEST_F(LaunchTest, OtherLoadFailuresAreNotTheImagesFault) {
  const ConvSpec spec = new_spec();
  const codegen::ConvPlan plan = codegen::make_plan(spec, current_target());
  runtime::compile_plan(plan);
  const Kernel kernel = runtime::compile_plan(plan);
  const Statistics before = statistics();
  fake_driver::fail("cuLibraryLoadData", 2);
  EXPECT_THROW(runtime::prepare(kernel), CudaError);
  EXPECT_EQ(statistics().compilations, before.compilations);
}

TEST_F(LaunchTest, AnErrorNamesCallCodeAndConsequence) {
  const ConvSpec spec = new_spec();
  const Kernel kernel = compile(spec);
  fake_driver::fail("cuLaunchKernel", 700);
  try {
    kernel.launch(nullptr, addresses_for(spec));
    FAIL() << "launched";
  } catch (const CudaError& error) {
    EXPECT_EQ(error.code(), ErrorCode::cuda);
    EXPECT_EQ(error.result(), 700);
    EXPECT_EQ(error.call(), "cuLaunchKernel");
    EXPECT_NE(std::string(error.what()).find("CUDA_ERROR_ILLEGAL_ADDRESS (700)"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("unusable from now on"), std::string::npos) << error.what();
  }
}

// Whatever call fails, the error says so, nothing leaks, and the next attempt works.
TEST_F(LaunchTest, EveryCallMayFail) {
  current_target();  // opens the driver, which driver_test.cpp makes fail
  fake_driver::set_current_device(-1);
  int n = 1;
  for (bool reached = true; reached; ++n) {
    const ConvSpec spec = new_spec();
    const int libraries = fake_driver::live_libraries();
    const std::size_t launches = fake_driver::launches().size();
    const auto run = [&spec] { compile(spec).launch(nullptr, addresses_for(spec)); };
    fake_driver::fail_call_number(n, 999);
    try {
      run();
      EXPECT_TRUE(fake_driver::failure_was_not_reached()) << "call " << n << " failed and nobody noticed";
      reached = false;
    } catch (const CudaError& error) {
      EXPECT_EQ(error.result(), 999) << error.what();
      run();
    }
    EXPECT_EQ(fake_driver::launches().size(), launches + 1) << "call " << n;
    EXPECT_EQ(fake_driver::live_libraries(), libraries + 1) << "call " << n;
  }
  EXPECT_GT(n, 10);
}

TEST_F(LaunchTest, ADriverThatKeepsItsCaptureModeIsNoObstacle) {
  fake_driver::fail("cuThreadExchangeStreamCaptureMode", 801, 100);
  EXPECT_NO_THROW(compile(new_spec()));
}

}  // namespace
}  // namespace jitconv::runtime_test
