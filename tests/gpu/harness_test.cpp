// The suite's own eyes: kernels that are wrong in one way each must be found, and found in that way. Without these a
// suite that looks at nothing would pass.
#include <gtest/gtest.h>

#include "codegen/plan.h"
#include "codegen/source.h"
#include "gpu/gpu.h"
#include "gpu/raw_kernel.h"
#include "support/runner.h"

namespace jitconv::test {
namespace {

class Harness : public GpuTest {
 protected:
  void SetUp() override {
    GpuTest::SetUp();
    if (!IsSkipped()) arena_ = std::make_unique<Arena>(device());
  }

  /// What judge() says of a kernel with this body, which is to compute y[i] = w[0] * x[i] for i < 256.
  std::string verdict_on(const std::string& body) {
    const ConvSpec spec = parse_spec("input=1,1,8,32 weight=1,1,1,1");
    const RawKernel kernel = RawKernel::compiled(
        "extern \"C\" __global__ void planted(float* x, float* w, float* y) {\n"
        "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n" +
            body + "\n}\n",
        "planted", target());
    const Reference reference = make_reference(spec, check::DataKind::exact, /*seed=*/7, {});
    const LaunchArgs args = place_tensors(*arena_, spec, 0);
    fill_tensors(device(), spec, reference.data, args, /*workspace_bytes=*/0);
    kernel.launch(2, 128, const_cast<void*>(args.x), const_cast<void*>(args.w), args.y);
    Report::Category counts;
    std::string verdict = judge(device(), spec, reference, args, *arena_, counts);
    EXPECT_EQ(counts.failed, verdict.empty() ? 0 : 1);
    EXPECT_EQ(counts.outputs, 256);
    return verdict;
  }

  std::unique_ptr<Arena> arena_;
};

#define EXPECT_MENTIONS(text, part) EXPECT_NE((text).find(part), std::string::npos) << "verdict: " << (text)

TEST_F(Harness, ARightKernelIsRight) { EXPECT_EQ(verdict_on("y[i] = w[0] * x[i];"), ""); }

TEST_F(Harness, OneWrongValue) {
  EXPECT_MENTIONS(verdict_on("y[i] = w[0] * x[i] + (i == 200);"), "1 of 256 outputs wrong");
}

TEST_F(Harness, ALastBitIsWrong) {
  EXPECT_MENTIONS(verdict_on("y[i] = __uint_as_float(__float_as_uint(w[0] * x[i]) ^ (i == 31));"),
                  "1 of 256 outputs wrong");
}

TEST_F(Harness, OneMissingOutput) {
  const std::string verdict = verdict_on("if (i != 255) y[i] = w[0] * x[i];");
  EXPECT_MENTIONS(verdict, "1 outputs are NaN or were not written");
}

TEST_F(Harness, NothingWritten) {
  const std::string verdict = verdict_on("");
  EXPECT_MENTIONS(verdict, "256 outputs are NaN or were not written");
  EXPECT_MENTIONS(verdict, "256 of 256 outputs wrong");
}

TEST_F(Harness, WriteBehindTheOutput) {
  EXPECT_MENTIONS(verdict_on("y[i] = w[0] * x[i]; if (i == 0) y[256] = 1.0f;"), "redzone after y");
}

TEST_F(Harness, WriteBeforeTheOutput) {
  EXPECT_MENTIONS(verdict_on("y[i] = w[0] * x[i]; if (i == 0) y[-1] = 1.0f;"), "redzone after w");
}

TEST_F(Harness, ReadOutsideAnInput) {
  EXPECT_MENTIONS(verdict_on("y[i] = w[0] * x[i] + 0.0f * x[i - 1];"), "1 outputs are NaN");
  EXPECT_MENTIONS(verdict_on("y[i] = w[0] * x[i] + 0.0f * x[i + 1];"), "1 outputs are NaN");
}

TEST_F(Harness, OverwrittenInput) {
  EXPECT_MENTIONS(verdict_on("y[i] = w[0] * x[i]; x[i] = 77.5f;"), "x[0] is 77.5 on the device");
}

// An error of the kind a generator makes: one constant of a generated kernel.
TEST_F(Harness, AWrongConstantOfAGeneratedKernel) {
  const ConvSpec spec = parse_spec("input=2,5,17,19 weight=6,5,3,3 padding=1");
  const codegen::ConvPlan plan = codegen::make_plan(spec, target());
  const codegen::KernelSource source = codegen::generate(plan);
  const codegen::KernelEntry& entry = source.entries.front();
  const auto verdict_with = [&](const std::string& pad_top) {
    std::string text = source.text;
    const std::string constant = "constexpr int kPadTop = 1;";
    const std::size_t at = text.find(constant);
    if (at == std::string::npos) return std::string("the source has no ") + constant;
    text.replace(at, constant.size(), "constexpr int kPadTop = " + pad_top + ";");
    const RawKernel kernel(runtime::compile_source(text, "planted.cu", source.options).cubin, entry.name,
                           entry.shared_bytes);
    const Reference reference = make_reference(spec, check::DataKind::exact, /*seed=*/3, {});
    const LaunchArgs args = place_tensors(*arena_, spec, 0);
    fill_tensors(device(), spec, reference.data, args, /*workspace_bytes=*/0);
    kernel.launch(entry.grid[0], entry.threads, const_cast<void*>(args.x), const_cast<void*>(args.w), args.y);
    Report::Category counts;
    return judge(device(), spec, reference, args, *arena_, counts);
  };
  EXPECT_EQ(verdict_with("1"), "");
  EXPECT_MENTIONS(verdict_with("0"), "outputs wrong");
}

TEST_F(Harness, RedzonesAreLargeAndOnBothSides) {
  const ConvSpec spec = parse_spec("input=1,3,5,7 weight=4,3,3,3 bias residual alignment=4");
  const LaunchArgs args = place_tensors(*arena_, spec, 0);
  EXPECT_GE(arena_->guarded_bytes(), 6 * Arena::kRedzoneBytes);
  for (const void* tensor : {args.x, args.w, static_cast<const void*>(args.y), args.bias, args.residual})
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor) % 8, 4u) << "not misaligned by one element";
  EXPECT_EQ(arena_->damage(), "");
}

}  // namespace
}  // namespace jitconv::test
