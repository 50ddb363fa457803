// The promises about launching: the same bits every time, any stream, any thread, CUDA graphs, residual added in place,
// nothing to do for empty outputs.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "gpu/gpu.h"
#include "gpu/launchable.h"
#include "jitconv/error.h"
#include "runtime/compile.h"
#include "support/case_lists.h"

namespace jitconv::test {
namespace {

using Launch = GpuTest;

ConvSpec some_spec() { return parse_spec("input=4,16,40,70 weight=24,16,3,3 padding=1 bias activation=silu"); }

TEST_F(Launch, SameBitsOnEveryRun) {
  for (const FamilyCase& family : family_cases(target())) {
    SCOPED_TRACE(family.name);
    Launchable one(device(), family.spec, 5);
    one.kernel.launch(nullptr, one.args);
    device().synchronize();
    const std::vector<std::byte> first = one.bits();
    EXPECT_EQ(one.verdict(), "");
    for (int run = 0; run < 3; ++run) {
      one.fill();
      one.kernel.launch(nullptr, one.args);
      device().synchronize();
      EXPECT_TRUE(one.bits() == first) << "run " << run;
    }
  }
}

TEST_F(Launch, CompileForTheDeviceGivesALoadedKernelAndTheSameOneAgain) {
  const Kernel first = compile(some_spec()), second = compile(some_spec());
  EXPECT_EQ(&first.source(), &second.source()) << "not the same kernel";
  ASSERT_FALSE(first.resources().empty());
  for (const Resources& resources : first.resources()) {
    EXPECT_GT(resources.registers, 0);
    EXPECT_EQ(resources.local_bytes, 0);
  }
  EXPECT_EQ(first.target(), target());
}

TEST_F(Launch, TwoStreams) {
  Launchable a(device(), some_spec(), 1), b(device(), some_spec(), 2);
  EXPECT_EQ(&a.kernel.source(), &b.kernel.source()) << "not the same kernel";
  const Stream stream_a, stream_b;
  for (int i = 0; i < 100; ++i) {
    a.kernel.launch(stream_a.get(), a.args);
    b.kernel.launch(stream_b.get(), b.args);
  }
  stream_a.synchronize();
  stream_b.synchronize();
  EXPECT_EQ(a.verdict(), "");
  EXPECT_EQ(b.verdict(), "");
  EXPECT_FALSE(a.bits() == b.bits());
}

TEST_F(Launch, ThreadsWithoutAContextOfTheirOwn) {
  constexpr int kThreads = 4, kLaunches = 200;
  std::vector<std::unique_ptr<Launchable>> all;
  for (int i = 0; i < kThreads; ++i)
    all.push_back(std::make_unique<Launchable>(device(), some_spec(), static_cast<std::uint64_t>(i + 1)));
  std::vector<std::unique_ptr<Stream>> streams;
  for (int i = 0; i < kThreads; ++i) streams.push_back(std::make_unique<Stream>());
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      try {
        for (int j = 0; j < kLaunches; ++j) all[i]->kernel.launch(streams[i]->get(), all[i]->args);
      } catch (const std::exception&) {
        ++failures;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures.load(), 0);
  for (std::size_t i = 0; i < kThreads; ++i) {
    streams[i]->synchronize();
    EXPECT_EQ(all[i]->verdict(), "") << "thread " << i;
  }
}

TEST_F(Launch, ThreadsThatLoadTheSameKernel) {
  // Not loaded yet: the first launches race for it.
  const ConvSpec spec = parse_spec("input=3,6,21,22 weight=7,6,3,3 padding=1");
  const Kernel kernel = compile(spec, target());
  std::vector<std::unique_ptr<Launchable>> all;
  for (std::uint64_t i = 0; i < 4; ++i) {
    all.push_back(std::make_unique<Launchable>(device(), spec, i + 1));
    all.back()->kernel = runtime::compile_plan(runtime::plan_of(kernel));
  }
  const Kernel shared = all.front()->kernel;
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (auto& one : all) {
    threads.emplace_back([&shared, &one, &failures] {
      try {
        shared.launch(nullptr, one->args);
      } catch (const std::exception&) {
        ++failures;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures.load(), 0);
  for (auto& one : all) EXPECT_EQ(one->verdict(), "");
}

TEST_F(Launch, CapturedIntoAGraphAndReplayed) {
  for (const FamilyCase& family : family_cases(target())) {
    SCOPED_TRACE(family.name);
    Launchable one(device(), family.spec, 1);
    const Stream stream;
    Graph graph(stream);
    one.kernel.launch(stream.get(), one.args);
    graph.end_capture();
    EXPECT_EQ(device().count_nan(one.args.y, family.spec.dtype, output_count(family.spec)), output_count(family.spec))
        << "the capture ran the kernel";
    for (std::uint64_t replay = 2; replay < 5; ++replay) {
      one.reference = make_reference(family.spec, check::DataKind::exact, replay, {});
      one.fill();
      graph.launch();
      stream.synchronize();
      EXPECT_EQ(one.verdict(), "") << "replay " << replay;
    }
  }
}

TEST_F(Launch, AKernelThatIsNotLoadedRefusesToBeCaptured) {
  const Kernel kernel =
      runtime::compile_plan(codegen::make_plan(parse_spec("input=2,6,21,22 weight=7,6,3,3"), target()));
  Arena arena(device());
  const LaunchArgs args = place_tensors(arena, kernel.spec(), kernel.workspace_bytes());
  device().synchronize();
  const Stream stream;
  const Graph graph(stream);
  try {
    kernel.launch(stream.get(), args);
    FAIL() << "was captured";
  } catch (const CudaError& error) {
    EXPECT_NE(std::string(error.what()).find("being captured"), std::string::npos) << error.what();
  }
}

TEST_F(Launch, AnotherThreadMayCompileDuringACapture) {
  Launchable one(device(), some_spec(), 1);
  const Stream stream;
  Graph graph(stream);
  one.kernel.launch(stream.get(), one.args);
  std::string error;
  std::thread other([&error] {
    try {
      compile(parse_spec("input=2,5,13,14 weight=6,5,3,3"));
    } catch (const std::exception& exception) {
      error = exception.what();
    }
  });
  other.join();
  EXPECT_EQ(error, "");
  graph.end_capture();  // throws if the compilation broke the capture
  graph.launch();
  stream.synchronize();
  EXPECT_EQ(one.verdict(), "");
}

TEST_F(Launch, ResidualMayBeTheOutput) {
  for (const FamilyCase& family : family_cases(target())) {
    for (const DataType type : {DataType::f32, DataType::f16, DataType::bf16}) {
      ConvSpec spec = family.spec;
      spec.dtype = type;
      spec.epilogue.residual = true;
      SCOPED_TRACE(family.name + ": " + to_string(spec));
      Launchable one(device(), spec, 3);
      device().generate(one.args.y, output_count(spec), one.reference.data.residual);
      LaunchArgs in_place = one.args;
      in_place.residual = one.args.y;
      one.kernel.launch(nullptr, in_place);
      EXPECT_EQ(one.verdict(), "");
    }
  }
}

TEST_F(Launch, AnEmptyBatchIsANoOp) {
  ConvSpec spec = some_spec();
  spec.input.n = 0;
  const Kernel kernel = compile(spec);
  kernel.launch(nullptr, {});
  device().synchronize();
  EXPECT_EQ(kernel.workspace_bytes(), 0);
  EXPECT_TRUE(kernel.image().empty());
}

TEST_F(Launch, LineInformationChangesNothingElse) {
  Launchable one(device(), some_spec(), 1);
  one.kernel.launch(nullptr, one.args);
  const std::vector<std::byte> plain = one.bits();
  one.fill();
  one.kernel = compile(some_spec(), CompileOptions{.line_info = true});
  one.kernel.launch(nullptr, one.args);
  EXPECT_TRUE(one.bits() == plain);
  EXPECT_EQ(one.verdict(), "");
}

TEST_F(Launch, AKernelForAnotherArchitectureIsRefused) {
  const Target other = parse_target(target().major == 8 ? "sm_90" : "sm_80");
  const Kernel kernel = compile(parse_spec("input=1,4,9,9 weight=4,4,3,3"), other);
  Arena arena(device());
  const LaunchArgs args = place_tensors(arena, kernel.spec(), kernel.workspace_bytes());
  try {
    kernel.launch(nullptr, args);
    FAIL() << "a kernel for " << other.arch() << " was launched";
  } catch (const CudaError& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_NE(std::string(error.what()).find(other.arch()), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace jitconv::test
