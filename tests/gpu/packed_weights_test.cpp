// Weights packed ahead of the launches: the same bits as packing in each launch, and packing on a stream and in a
// graph.
#include "support/packed_weights.h"

#include <gtest/gtest.h>

#include "gpu/gpu.h"
#include "runtime/compile.h"
#include "support/runner.h"

namespace jitconv::test {
namespace {

class PackedWeights : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    cases_ = packing_cases(target());
    if (cases_.empty()) GTEST_SKIP() << "no kernel for " << target().arch() << " packs weights";
  }
  std::vector<PackingCase> cases_;
};

TEST_F(PackedWeights, GiveTheSameBits) {
  ASSERT_EQ(cases_.size(), 9u);
  Report::Category counts;
  for (const PackingCase& one : cases_)
    EXPECT_EQ(packing_fault(device(), runtime::compile_plan(one.plan), counts), "") << one.name;
  Report::get().add("packed weights", counts);
}

TEST_F(PackedWeights, LieAsTheMultiplicationsTakeThem) {
  const std::vector<codegen::ConvPlan> plans = layout_plans(target());
  ASSERT_EQ(plans.size(), 22u);
  for (const codegen::ConvPlan& plan : plans)
    EXPECT_EQ(packed_bytes_fault(device(), runtime::compile_plan(plan)), "") << to_string(plan.spec);
}

// Kernels of a launch overlap, those of two launches must not: they write the same workspace.
TEST_F(PackedWeights, LaunchesThatShareAWorkspaceDoNotMeet) {
  constexpr int kLaunches = 200;
  for (const PackingCase& one : cases_) {
    SCOPED_TRACE(one.name);
    const ConvSpec& spec = one.plan.spec;
    const Kernel kernel = runtime::compile_plan(one.plan);
    device().prepare(kernel);
    const tools::Buffer workspace(device(), kernel.workspace_bytes());
    Arena arenas[] = {Arena(device()), Arena(device())};
    LaunchArgs args[2];
    std::vector<std::byte> alone[2];
    for (std::size_t i = 0; i < 2; ++i) {
      const Reference reference = make_reference(spec, check::DataKind::random, 5 + i, {});
      args[i] = place_tensors(arenas[i], spec, kernel.workspace_bytes());
      args[i].workspace = workspace.data();
      fill_tensors(device(), spec, reference.data, args[i], kernel.workspace_bytes());
      kernel.launch(nullptr, args[i]);
      device().synchronize();
      alone[i] = output_bytes(device(), spec, args[i]);
    }
    EXPECT_FALSE(alone[0] == alone[1]);
    const std::int64_t bytes = output_count(spec) * element_bytes(spec.dtype);
    const auto same = [&](const char* how) {
      device().synchronize();
      for (std::size_t i = 0; i < 2; ++i)
        EXPECT_TRUE(output_bytes(device(), spec, args[i]) == alone[i]) << how << ", launch " << i;
    };
    const auto launch_in_turns = [&](void* stream) {
      for (int i = 0; i < kLaunches; ++i) {
        const LaunchArgs& next = args[i % 2];
        check_cuda(CudaCalls::get().memset_d8_async(reinterpret_cast<std::uintptr_t>(next.y), kNanByte,
                                                    static_cast<std::size_t>(bytes), stream),
                   "cuMemsetD8Async");
        kernel.launch(stream, next);
      }
    };
    launch_in_turns(nullptr);
    same("on the default stream");
    const Stream stream;
    Graph graph(stream);
    launch_in_turns(stream.get());
    graph.end_capture();
    graph.launch();
    graph.launch();
    stream.synchronize();
    same("in a graph");
    // Without anything between them.
    for (int i = 0; i < kLaunches; ++i) kernel.launch(nullptr, args[i % 2]);
    same("back to back");
  }
}

TEST_F(PackedWeights, PackingIsCapturedIntoAGraph) {
  Report::Category counts;
  for (const PackingCase& one : cases_) {
    SCOPED_TRACE(one.name);
    const ConvSpec& spec = one.plan.spec;
    const Kernel kernel = runtime::compile_plan(one.plan);
    device().prepare(kernel);
    Arena arena(device());
    const std::int64_t workspace_bytes = kernel.workspace_bytes_with_packed_weights();
    const LaunchArgs tensors = place_tensors(arena, spec, workspace_bytes, kernel.packed_weight_bytes());
    LaunchArgs launched = tensors;
    launched.w = nullptr;
    const Stream stream;
    Graph graph(stream);
    kernel.pack_weights(stream.get(), tensors.w, const_cast<void*>(tensors.packed_w));
    kernel.launch(stream.get(), launched);
    graph.end_capture();
    for (std::uint64_t replay = 1; replay < 4; ++replay) {
      const Reference reference = make_reference(spec, check::DataKind::exact, replay, {});
      fill_tensors(device(), spec, reference.data, tensors, workspace_bytes);
      device().set_bytes(const_cast<void*>(tensors.packed_w), kNanByte, kernel.packed_weight_bytes());
      device().synchronize();
      graph.launch();
      stream.synchronize();
      EXPECT_EQ(judge(device(), spec, reference, tensors, arena, counts), "") << "replay " << replay;
    }
  }
  Report::get().add("packed weights", counts);
}

TEST_F(PackedWeights, PackingBeforeTheKernelIsLoadedIsNotCaptured) {
  const Kernel kernel = runtime::compile_plan(cases_.front().plan);
  Arena arena(device());
  const LaunchArgs tensors = place_tensors(arena, kernel.spec(), 0, kernel.packed_weight_bytes());
  device().synchronize();
  const Stream stream;
  const Graph graph(stream);
  EXPECT_THROW(kernel.pack_weights(stream.get(), tensors.w, const_cast<void*>(tensors.packed_w)), CudaError);
}

}  // namespace
}  // namespace jitconv::test
