// What the API promises about launches of gradients: the same bits every time, whatever the workspace held, also from
// CUDA graphs; results added to what is there; pointers that cannot be are refused by name. And the gradients of the
// documented configurations at full size.
#include <gtest/gtest.h>

#include "gpu/gpu.h"
#include "gpu/launchable.h"
#include "jitconv/error.h"
#include "runtime/compile.h"
#include "support/case_lists.h"
#include "support/gradient_cases.h"
#include "support/special_values.h"
#include "tools/check/tensors.h"

namespace jitconv::test {
namespace {

class Gradients : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (!IsSkipped()) cases_ = gradient_cases(target());
  }

  Launchable launchable(const Case& one, std::uint64_t seed) {
    return {device(), one.spec, runtime::compile_plan(*one.plan), seed};
  }

  std::vector<Case> cases_;
};

TEST_F(Gradients, AreRight) {
  const Report::Category counts = run_cases(device(), "gradients", cases_);
  EXPECT_EQ(counts.kernels, static_cast<std::int64_t>(cases_.size()));
  EXPECT_EQ(counts.failed, 0);
}

TEST_F(Gradients, OfLayersWithAnActivationAreRight) {
  const std::vector<Case> cases = activation_gradient_cases(target());
  const Report::Category counts = run_cases(device(), "gradients behind an activation", cases);
  EXPECT_EQ(counts.kernels, static_cast<std::int64_t>(cases.size()));
  EXPECT_EQ(counts.failed, 0);
}

TEST_F(Gradients, SameBitsOnEveryRunWhateverTheWorkspaceHeld) {
  for (const Case& wanted : cases_) {
    SCOPED_TRACE(wanted.name);
    Launchable one = launchable(wanted, 5);
    one.kernel.launch(nullptr, one.args);  // into a workspace of NaN
    EXPECT_EQ(one.verdict(), "");
    const std::vector<std::byte> first = one.bits();
    for (const int byte : {0x00, 0x7f, 0xff, -1}) {
      // -1: what the launch before has left.
      if (byte >= 0)
        device().set_bytes(one.args.workspace, static_cast<std::uint8_t>(byte), one.kernel.workspace_bytes());
      for (const check::Result& result : check::results_of(one.spec))
        device().set_bytes(one.args.*result.pointer, kNanByte, result.bytes());
      one.kernel.launch(nullptr, one.args);
      device().synchronize();
      EXPECT_TRUE(one.bits() == first) << "workspace of " << byte;
    }
  }
}

TEST_F(Gradients, CapturedIntoAGraphAndReplayed) {
  for (const Case& wanted : cases_) {
    SCOPED_TRACE(wanted.name);
    Launchable one = launchable(wanted, 1);
    device().prepare(one.kernel);
    const Stream stream;
    Graph graph(stream);
    one.kernel.launch(stream.get(), one.args);
    graph.end_capture();
    for (const check::Result& result : check::results_of(one.spec))
      EXPECT_EQ(device().count_nan(one.args.*result.pointer, result.type, result.count), result.count)
          << "the capture ran the kernels";
    for (std::uint64_t replay = 2; replay < 5; ++replay) {
      one.reference = make_reference(one.spec, check::DataKind::exact, replay, {});
      one.fill();
      graph.launch();
      stream.synchronize();
      EXPECT_EQ(one.verdict(), "") << "replay " << replay;
      const std::vector<std::byte> replayed = one.bits();
      one.fill();
      one.kernel.launch(nullptr, one.args);
      device().synchronize();
      EXPECT_TRUE(one.bits() == replayed) << "replay " << replay;
    }
  }
}

TEST_F(Gradients, AreAddedToWhatIsThere) {
  std::size_t added = 0;
  for (const Case& wanted : cases_) {
    if (!wanted.spec.epilogue.residual) continue;
    SCOPED_TRACE(wanted.name);
    ++added;
    Launchable one = launchable(wanted, 3);
    const check::Result result = check::results_of(one.spec).front();
    void* const sums = one.args.*result.pointer;
    device().generate(sums, result.count, one.reference.data.residual);
    LaunchArgs in_place = one.args;
    in_place.residual = sums;
    one.kernel.launch(nullptr, in_place);
    EXPECT_EQ(one.verdict(), "");
  }
  EXPECT_EQ(added, has_wgmma_family(target()) ? 33u : 16u);
}

TEST_F(Gradients, SpecialValuesReachTheResultsThatReadThem) {
  Report::Category counts;
  for (const Case& one : cases_)
    EXPECT_EQ(special_values_fault(device(), runtime::compile_plan(*one.plan), counts), "") << one.name;
  EXPECT_EQ(counts.kernels, static_cast<std::int64_t>(cases_.size()));
  Report::get().add("special values of gradients", counts);
}

/// The field that the launch refuses; "" if it takes it.
std::string refused(const Launchable& one, const LaunchArgs& args) {
  try {
    one.kernel.launch(nullptr, args);
  } catch (const SpecError& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << error.what();
    return error.field();
  }
  return "";
}

// A launch does not know how large a buffer is. One that is too small reaches into what lies behind it.
TEST_F(Gradients, RefusesMissingMisalignedAndOverlappingBuffersByName) {
  for (const Case& wanted : cases_) {
    SCOPED_TRACE(wanted.name);
    Launchable one = launchable(wanted, 1);
    const auto moved = [](const void* pointer, std::int64_t bytes) {
      return static_cast<void*>(const_cast<char*>(static_cast<const char*>(pointer)) + bytes);
    };
    for (const check::Input& input : check::inputs_of(one.spec)) {
      LaunchArgs args = one.args;
      args.*input.pointer = moved(args.*input.pointer, element_bytes(input.type));
      EXPECT_EQ(refused(one, args), input.name);
      args.*input.pointer = nullptr;
      EXPECT_EQ(refused(one, args), input.name);
    }
    for (const check::Result& result : check::results_of(one.spec)) {
      LaunchArgs args = one.args;
      args.*result.pointer = moved(args.*result.pointer, element_bytes(result.type));
      EXPECT_EQ(refused(one, args), result.name);
      args.*result.pointer = const_cast<void*>(one.args.dy);
      EXPECT_EQ(refused(one, args), result.name) << "on dy";
      args.*result.pointer = nullptr;
      EXPECT_EQ(refused(one, args), result.name);
    }
    if (one.kernel.workspace_bytes() > 0) {
      LaunchArgs args = one.args;
      args.workspace = moved(args.workspace, 128);
      EXPECT_EQ(refused(one, args), "workspace");
      args.workspace = nullptr;
      EXPECT_EQ(refused(one, args), "workspace");
    }
    one.kernel.launch(nullptr, one.args);  // nothing was enqueued that could have failed
    EXPECT_EQ(one.verdict(), "");
  }
}

/// Sums of so many products take the reference long; fewer of them are compared.
RunOptions options_for(Operation operation) {
  RunOptions options;
  if (operation == Operation::weight_gradient) options.limits.sample = 48;
  return options;
}

TEST_F(Gradients, OfDocumentedConfigurationsAtFullSize) {
  std::size_t all = 0;
  for (const Operation operation : {Operation::data_gradient, Operation::weight_gradient}) {
    const std::vector<Case> cases = documented_gradient_cases(operation);
    all += cases.size();
    const Report::Category counts =
        run_cases(device(), "documented, " + std::string(to_string(operation)), cases, options_for(operation));
    EXPECT_EQ(counts.kernels, static_cast<std::int64_t>(cases.size()));
    EXPECT_EQ(counts.launches, static_cast<std::int64_t>(2 * cases.size()));
    EXPECT_EQ(counts.failed, 0);
  }
  EXPECT_EQ(all, 92u + 16u);
}

struct LargeGradient {
  const char* name;
  const char* spec;
};

constexpr LargeGradient kLargeGradients[] = {
    {"dx of 2^31 and an image", "operation=data_gradient input=17,128,1024,1024 weight=4,128,1,1 dtype=f16"},
    {"dx of 2^31 and an image, nhwc",
     "operation=data_gradient input=17,128,1024,1024 weight=16,128,2,2 stride=2 dtype=bf16 layout=nhwc"},
    {"dx of 2^31 and two images, phases",
     "operation=data_gradient input=33,64,1024,1024 weight=8,64,3,3 stride=8 padding=1 dtype=f16"},
    {"dx and dy of 2^31 and a channel",
     "operation=data_gradient input=1,2049,1024,1024 weight=2049,1,3,3 groups=2049 padding=1 dtype=f16"},
    {"dy of 2^31", "operation=data_gradient input=16,4,1024,1024 weight=128,4,1,1 dtype=f16"},
    {"x of 2^31 and two images",
     "operation=weight_gradient input=33,64,1024,1024 weight=8,64,3,3 stride=8 padding=1 dtype=f16 bias"},
    {"x of 2^31 and two images, nhwc",
     "operation=weight_gradient input=33,64,1024,1024 weight=16,64,1,1 stride=4 dtype=f16 layout=nhwc"},
    {"x of 2^31 and two images, on tensor cores",
     "operation=weight_gradient input=33,64,1024,1024 weight=16,64,1,1 dtype=bf16 bias"},
    {"dy of 2^31 and an image", "operation=weight_gradient input=17,4,1024,1024 weight=128,4,1,1 dtype=f16"},
    {"x and dy of 2^31 and a channel",
     "operation=weight_gradient input=1,2049,1024,1024 weight=2049,1,3,3 groups=2049 padding=1 dtype=f16"},
};

TEST_F(Gradients, BeyondTwoToThe31) {
  constexpr std::int64_t kBoundary = std::int64_t{1} << 31;
  std::vector<Case> cases[2];
  std::int64_t most = 0;
  for (const LargeGradient& large : kLargeGradients) {
    const ConvSpec spec = parse_spec(large.spec);
    ASSERT_GE(std::max(check::element_count(spec.input), check::element_count(output_shape(spec))), kBoundary);
    const codegen::ConvPlan plan = codegen::make_plan(spec, target());
    EXPECT_TRUE(plan.convolution().wide_index || codegen::uses_tensor_cores(plan.family())) << large.name;
    most = std::max(most, check::tensor_bytes(spec) + plan.workspace_bytes());
    Case next{large.name, spec, plan, false, {}};
    next.kinds = {check::DataKind::exact};
    cases[spec.operation == Operation::weight_gradient ? 1 : 0].push_back(next);
  }
  if (const std::int64_t free = device().free_bytes(); most + (std::int64_t{1} << 30) > free)
    GTEST_SKIP() << "needs " << (most >> 20) << " MiB of device memory, " << (free >> 20) << " MiB are free";
  for (const Operation operation : {Operation::data_gradient, Operation::weight_gradient}) {
    const std::vector<Case>& some = cases[operation == Operation::weight_gradient ? 1 : 0];
    const Report::Category counts = run_cases(device(), "2^31 boundary of gradients", some, options_for(operation));
    EXPECT_EQ(counts.kernels, static_cast<std::int64_t>(some.size()));
    EXPECT_EQ(counts.failed, 0);
  }
}

}  // namespace
}  // namespace jitconv::test
